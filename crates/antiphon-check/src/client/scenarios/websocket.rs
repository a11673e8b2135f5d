//! Valid and invalid WebSocket frames and handshakes.

use std::time::Duration;

use super::super::codec::http;
use super::super::codec::websocket::{BINARY, LAST, PING, PONG, TEXT, frame, masked, switched};
use super::super::scenario::{Precondition, Scenario, ServerAction, ServerScript, WS};

/// The time for a client to respond.
const ANSWER: Duration = Duration::from_secs(1);
const PAYLOAD: &[u8] = b"antiphon";
/// The first reserved bit.
const RESERVED: u8 = 0x40;

pub(super) fn responses() -> Vec<Scenario> {
    vec![
        Scenario::accepts(
            "ws-fragments",
            "a message may arrive in fragments, with a ping between them",
        )
        .over(WS)
        .section("RFC 6455 5.4")
        .why("Proxies split large messages, even inside a character.")
        .acts(|received, _| {
            let text = received.respond(|call| call.with_result("\"é\""));
            let at = text.find('é').map_or(1, |at| at + 1);
            let (head, tail) = text.as_bytes().split_at(at);
            let frames =
                [frame(TEXT, head), frame(LAST | PING, b""), frame(0, b""), frame(LAST, tail)];
            vec![ServerAction::Send(frames.concat())]
        }),
        Scenario::accepts("ws-binary", "a message may arrive in a binary frame")
            .choice()
            .over(WS)
            .section("RFC 6455 5.6")
            .why("Some servers send only binary frames.")
            .acts(|received, _| {
                vec![ServerAction::Send(frame(LAST | BINARY, received.ordinary().as_bytes()))]
            }),
    ]
}

pub(super) fn endings() -> Vec<Scenario> {
    [closes(), handshakes(), frames()].concat()
}

fn closes() -> Vec<Scenario> {
    vec![
        Scenario::rejects("ws-close", "a close frame ends the calls in flight")
            .over(WS)
            .section("RFC 6455 7.1.4")
            .why("A server that shuts down sends a close frame, and then no more messages.")
            .acts(|_, _| {
                vec![
                    ServerAction::CloseFrame(1001),
                    ServerAction::Listen(ANSWER),
                    ServerAction::Close,
                ]
            }),
        Scenario::survives("ws-close-answered", "a close frame gets a close frame")
            .over(WS)
            .section("RFC 6455 5.5.1")
            .why("The server waits for it before it closes the connection.")
            .acts(|_, _| {
                vec![
                    ServerAction::CloseFrame(1000),
                    ServerAction::Listen(ANSWER),
                    ServerAction::Close,
                ]
            })
            .record_check(|record| match record.has_close_frame {
                true => Ok(()),
                false => Err("the client sent no close frame".to_owned()),
            }),
    ]
}

fn handshakes() -> Vec<Scenario> {
    vec![
        Scenario::rejects("ws-refused", "a handshake may be rejected")
            .over(WS)
            .needs(Precondition::Nothing)
            .section("RFC 6455 4.1")
            .why("A server that is busy or denies access responds with a status.")
            .script(ServerScript::Handshake(|_| {
                let headers = ["content-length: 0", "connection: close"];
                http::response("503 Service Unavailable", &headers, "")
            })),
        Scenario::rejects(
            "ws-unproven",
            "a handshake with a wrong Sec-WebSocket-Accept is invalid",
        )
        .over(WS)
        .needs(Precondition::Nothing)
        .section("RFC 6455 4.1")
        .why("The header proves that the response is for this handshake and not from a cache.")
        .script(ServerScript::Handshake(|key| switched(&format!("not {key}")))),
    ]
}

fn frames() -> Vec<Scenario> {
    vec![
        Scenario::rejects("ws-masked-answer", "a server must not mask its frames")
            .over(WS)
            .section("RFC 6455 5.1")
            .why("A client must close the connection if a frame is masked.")
            .acts(|received, _| broken(masked(&received.ordinary()))),
        Scenario::rejects("ws-reserved-bits", "a reserved bit ends the connection")
            .over(WS)
            .section("RFC 6455 5.2")
            .why(
                "A reserved bit belongs to an extension, such as compression, and none was negotiated.",
            )
            .acts(|received, _| {
                broken(frame(LAST | TEXT | RESERVED, received.ordinary().as_bytes()))
            }),
        Scenario::rejects("ws-not-utf8", "text that is not UTF-8 ends the connection")
            .over(WS)
            .section("RFC 6455 8.1")
            .why("A client that repairs the text returns data that the server never sent.")
            .acts(|received, _| {
                let text = received.respond(|call| call.with_result("\"x\""));
                let mut payload = text.into_bytes();
                let at =
                    payload.windows(3).position(|part| part == b"\"x\"").map_or(0, |at| at + 1);
                payload[at] = 0xFF;
                broken(frame(LAST | TEXT, &payload))
            }),
    ]
}

pub(super) fn reverse() -> Vec<Scenario> {
    vec![
        Scenario::accepts("ws-ping", "a ping gets a pong with the same payload")
            .over(WS)
            .section("RFC 6455 5.5.2")
            .why("A server that gets no pong closes the connection.")
            .acts(|received, _| {
                let ping = frame(LAST | PING, PAYLOAD);
                vec![
                    ServerAction::Send(ping),
                    ServerAction::Listen(ANSWER),
                    ServerAction::Message(received.ordinary()),
                ]
            })
            .record_check(|record| match record.pongs.iter().any(|pong| pong == PAYLOAD) {
                true => Ok(()),
                false => Err("the client sent no pong with the payload of the ping".to_owned()),
            }),
        Scenario::accepts("ws-pong-unasked", "an unsolicited pong is ignored")
            .over(WS)
            .section("RFC 6455 5.5.3")
            .why("Servers use it as a one-way heartbeat.")
            .acts(|received, _| {
                vec![
                    ServerAction::Send(frame(LAST | PONG, PAYLOAD)),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
    ]
}

/// Sends invalid bytes, and closes the connection after a delay.
fn broken(bytes: Vec<u8>) -> Vec<ServerAction> {
    ServerAction::then_close(ServerAction::Send(bytes))
}
