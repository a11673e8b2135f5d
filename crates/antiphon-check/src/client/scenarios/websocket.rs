//! Frames as RFC 6455 allows them, and as it does not.

use std::time::Duration;

use super::super::codec::http;
use super::super::codec::websocket::{BINARY, LAST, PING, PONG, TEXT, frame, masked, switched};
use super::super::scenario::{Precondition, Scenario, ServerAction, ServerScript, WS};

/// How long a client may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
const PAYLOAD: &[u8] = b"antiphon";
/// The bit of the first extension.
const RESERVED: u8 = 0x40;

pub(super) fn responses() -> Vec<Scenario> {
    vec![
        Scenario::accepts(
            "ws-fragments",
            "a message may come in fragments, with a ping among them",
        )
        .over(WS)
        .section("RFC 6455 5.4")
        .why("Proxies split large messages, even within a character.")
        .acts(|received, _| {
            let text = received.respond(|call| call.with_result("\"é\""));
            let at = text.find('é').map_or(1, |at| at + 1);
            let (head, tail) = text.as_bytes().split_at(at);
            let frames =
                [frame(TEXT, head), frame(LAST | PING, b""), frame(0, b""), frame(LAST, tail)];
            vec![ServerAction::Send(frames.concat())]
        }),
        Scenario::accepts("ws-binary", "a message may come in a binary frame")
            .choice()
            .over(WS)
            .section("RFC 6455 5.6")
            .why("Some servers send nothing else.")
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
        Scenario::rejects("ws-close", "a close frame ends the calls that wait")
            .over(WS)
            .section("RFC 6455 7.1.4")
            .why("A server that shuts down says goodbye; nothing will come behind it.")
            .acts(|_, _| {
                vec![
                    ServerAction::CloseFrame(1001),
                    ServerAction::Listen(ANSWER),
                    ServerAction::Close,
                ]
            }),
        Scenario::survives("ws-close-answered", "a close frame is answered with one")
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
                false => Err("the close frame was not answered".to_owned()),
            }),
    ]
}

fn handshakes() -> Vec<Scenario> {
    vec![
        Scenario::rejects("ws-refused", "a handshake may be refused")
            .over(WS)
            .needs(Precondition::Nothing)
            .section("RFC 6455 4.1")
            .why("A server that is busy, or does not let the client in, answers with a status.")
            .script(ServerScript::Handshake(|_| {
                let headers = ["content-length: 0", "connection: close"];
                http::response("503 Service Unavailable", &headers, "")
            })),
        Scenario::rejects("ws-unproven", "a handshake without its proof is none")
            .over(WS)
            .needs(Precondition::Nothing)
            .section("RFC 6455 4.1")
            .why("A cache that repeats an old answer is not the server.")
            .script(ServerScript::Handshake(|key| switched(&format!("not {key}")))),
    ]
}

fn frames() -> Vec<Scenario> {
    vec![
        Scenario::rejects("ws-masked-answer", "a server must not mask its frames")
            .over(WS)
            .section("RFC 6455 5.1")
            .why("A client must close the connection when it sees one.")
            .acts(|received, _| broken(masked(&received.ordinary()))),
        Scenario::rejects("ws-reserved-bits", "a bit that was not agreed on ends the connection")
            .over(WS)
            .section("RFC 6455 5.2")
            .why("It says that the payload is not what it seems, such as compressed.")
            .acts(|received, _| {
                broken(frame(LAST | TEXT | RESERVED, received.ordinary().as_bytes()))
            }),
        Scenario::rejects("ws-not-utf8", "a text that is not UTF-8 ends the connection")
            .over(WS)
            .section("RFC 6455 8.1")
            .why("A client that mends it hands on what was never said.")
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
        Scenario::accepts("ws-ping", "a ping is answered with a pong that says the same")
            .over(WS)
            .section("RFC 6455 5.5.2")
            .why("A server takes a client that stays silent for gone, and leaves it.")
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
                false => Err("the ping was not answered with a pong of its payload".to_owned()),
            }),
        Scenario::accepts("ws-pong-unasked", "a pong that nobody asked for is passed over")
            .over(WS)
            .section("RFC 6455 5.5.3")
            .why("It is a heartbeat in one direction.")
            .acts(|received, _| {
                vec![
                    ServerAction::Send(frame(LAST | PONG, PAYLOAD)),
                    ServerAction::Message(received.ordinary()),
                ]
            }),
    ]
}

/// Sends what breaks the protocol, and leaves after a while.
fn broken(bytes: Vec<u8>) -> Vec<ServerAction> {
    ServerAction::then_close(ServerAction::Send(bytes))
}
