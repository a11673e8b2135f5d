//! WebSockets, frame by frame.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{Client, Context, ErrorChain, Limits, RawJson, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    FOREVER, Holding, answer, dial, holding, request, rest, serve, stall_goes_by, within,
};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// One frame of a client.
fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode | if last { 0x80 } else { 0 }];
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(masked(payload, MASK));
    frame
}

/// Applies a mask, or removes it.
fn masked(payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// One short frame of a server.
fn unmasked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).ok().filter(|length| *length < 126);
    [&[0x80 | opcode, length.unwrap()], payload].concat()
}

/// A WebSocket after its handshake, for frames of any kind.
async fn open(address: &str) -> BufReader<TcpStream> {
    let mut stream = dial(address).await;
    let handshake = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
        upgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(handshake.as_bytes()).await.unwrap();
    let head = head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream
}

/// The head of a request or of a response.
async fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(within(stream.read_line(&mut head)).await.unwrap(), 0, "ended inside {head}");
    }
    head
}

/// Reads the next frame of the peer: its opcode and its payload.
async fn next(stream: &mut BufReader<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    within(stream.read_exact(&mut head)).await.expect("the connection is open");
    let length = match head[1] & 0x7f {
        126 => usize::from(within(stream.read_u16()).await.unwrap()),
        short => usize::from(short),
    };
    let mut mask = [0; 4];
    if head[1] & 0x80 != 0 {
        within(stream.read_exact(&mut mask)).await.unwrap();
    }
    let mut payload = vec![0; length];
    within(stream.read_exact(&mut payload)).await.unwrap();
    (head[0] & 0x0f, masked(&payload, mask))
}

fn echo() -> Router {
    Router::new().method("echo", |params: RawJson, _cx: Context| async move { Ok(params) })
}

fn stalling_soon() -> Limits {
    Limits { stall_timeout: Duration::from_millis(40), ..Limits::default() }
}

/// Waits until the stall timeout of a server has passed twice. Half a frame is the clock.
async fn websocket_stall_goes_by(address: &str) {
    for _ in 0..2 {
        let mut stalled = open(address).await;
        let whole = frame(TEXT, true, request(1, "echo", "[]").as_bytes());
        stalled.write_all(&whole[..whole.len() / 2]).await.unwrap();
        rest(&mut stalled).await;
    }
}

/// The `sec-websocket-accept` value for the key in this head.
fn proof(head: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let (_, key) = lines.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).unwrap();
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    BASE64.encode(sha1_smol::Sha1::from(text).digest().bytes())
}

/// A client that connects, and the server end, whose handshake response this closure makes from the
/// `sec-websocket-accept` value.
async fn answered(
    with: impl FnOnce(String) -> Vec<u8>,
) -> (Result<Client, String>, BufReader<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    let connecting = Client::builder().limits(stalling_soon()).connect(&address);
    let accepting = async {
        let mut stream = BufReader::new(listener.accept().await.unwrap().0);
        let answer = with(proof(&head(&mut stream).await));
        stream.write_all(&answer).await.unwrap();
        stream
    };
    let (client, server) = within(async { tokio::join!(connecting, accepting) }).await;
    (client.map_err(|error| ErrorChain(&error).to_string()), server)
}

fn agree(proof: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {proof}\r\n\r\n"
    )
}

/// A client, and the server end of its WebSocket.
async fn accepted() -> (Client, BufReader<TcpStream>) {
    let (client, server) = answered(|proof| agree(&proof).into()).await;
    (client.unwrap(), server)
}

/// Checks that the client is still connected.
async fn calls(client: Client, mut server: BufReader<TcpStream>) {
    let call = tokio::spawn(client.call::<u64>("ask", ()).into_future());
    let (opcode, question) = next(&mut server).await;
    assert_eq!(opcode, TEXT);
    let question: serde_json::Value = serde_json::from_slice(&question).unwrap();
    let answer = unmasked(TEXT, answer(&question["id"], "5").as_bytes());
    server.write_all(&answer).await.unwrap();
    assert_eq!(within(call).await.unwrap().unwrap(), 5);
}

/// Checks that the client is still connected after the stall timeout.
async fn stays(client: Client, server: BufReader<TcpStream>) {
    let clock = serve("tcp://127.0.0.1:0", stalling_soon(), Router::new()).await;
    stall_goes_by(&clock).await;
    calls(client, server).await;
}

#[tokio::test]
async fn a_websocket_that_is_idle_after_a_ping_or_a_message_stays_open() {
    let address = serve("ws://127.0.0.1:0", stalling_soon(), echo()).await;
    let mut pinged = open(&address).await;
    pinged.write_all(&frame(PING, true, b"hi")).await.unwrap();
    assert_eq!(next(&mut pinged).await, (PONG, b"hi".to_vec()));
    let mut served = open(&address).await;
    let message = frame(TEXT, true, request(1, "echo", "[1]").as_bytes());
    served.write_all(&message).await.unwrap();
    assert_eq!(next(&mut served).await.0, TEXT);
    websocket_stall_goes_by(&address).await;
    for stream in [&mut pinged, &mut served] {
        stream.write_all(&message).await.unwrap();
        assert_eq!(next(stream).await.0, TEXT);
    }
}

#[tokio::test]
async fn a_websocket_client_that_receives_a_ping_stays_open() {
    let (client, mut server) = accepted().await;
    server.write_all(&unmasked(PING, b"hi")).await.unwrap();
    assert_eq!(next(&mut server).await, (PONG, b"hi".to_vec()));
    stays(client, server).await;
}

#[tokio::test]
async fn half_a_websocket_message_is_a_stall() {
    let address = serve("ws://127.0.0.1:0", stalling_soon(), echo()).await;
    let whole = frame(TEXT, true, request(1, "echo", "[]").as_bytes());
    let fragment = frame(TEXT, false, b"{");
    for half in [&whole[..1], &whole[..10], &fragment] {
        let mut stream = open(&address).await;
        stream.write_all(half).await.unwrap();
        rest(&mut stream).await;
        // Also if it arrived together with a complete message.
        let mut stream = open(&address).await;
        stream.write_all(&[&whole, half].concat()).await.unwrap();
        assert_eq!(next(&mut stream).await.0, TEXT);
        rest(&mut stream).await;
        let mut stream = open(&address).await;
        stream.write_all(&[half, &frame(PING, true, b"hi")].concat()).await.unwrap();
        rest(&mut stream).await;
    }
}

#[tokio::test]
async fn fragments_over_the_limit_are_never_served() {
    let limits = Limits { frame_bytes: 120, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, echo()).await;
    let start = frame(TEXT, false, br#"{"jsonrpc":"2.0","method":"echo","params":["a"#);
    let (middle, end) = ([b'B'; 100], br#"z"],"id":7}"#);
    let cases = [
        // Without the middle fragment it would be a valid request.
        [start.clone(), frame(CONTINUATION, false, &middle), frame(CONTINUATION, true, end)],
        [start.clone(), frame(CONTINUATION, true, &middle), Vec::new()],
        [start, frame(CONTINUATION, false, &[b'B'; 121]), frame(CONTINUATION, true, end)],
        [frame(TEXT, true, &[b'B'; 121]), Vec::new(), Vec::new()],
    ];
    for frames in cases {
        let mut stream = open(&address).await;
        stream.write_all(&frames.concat()).await.unwrap();
        let (opcode, payload) = next(&mut stream).await;
        assert_eq!((opcode, &payload[..2]), (CLOSE, &1009u16.to_be_bytes()[..]));
        assert_eq!(rest(&mut stream).await, b"");
    }
}

#[tokio::test]
async fn fragments_within_the_limit_are_one_message() {
    let address = serve("ws://127.0.0.1:0", Limits::default(), echo()).await;
    let mut stream = open(&address).await;
    let message = request(7, "echo", "[\"abc\"]");
    let (start, end) = message.as_bytes().split_at(30);
    let frames =
        [frame(TEXT, false, start), frame(PING, true, b""), frame(CONTINUATION, true, end)];
    stream.write_all(&frames.concat()).await.unwrap();
    assert_eq!(next(&mut stream).await, (PONG, Vec::new()));
    let (opcode, payload) = next(&mut stream).await;
    assert_eq!(opcode, TEXT);
    assert!(String::from_utf8(payload).unwrap().contains(r#"["abc"]"#));
}

#[tokio::test]
async fn a_closed_websocket_cancels_calls_at_the_in_flight_limit() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { in_flight: 2, stall_timeout: FOREVER, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, router).await;
    let mut stream = open(&address).await;
    for id in 0..2 {
        let message = request(id, "hold", "[]");
        stream.write_all(&frame(TEXT, true, message.as_bytes())).await.unwrap();
        within(entered.recv()).await.unwrap();
    }
    drop(stream);
    for _ in 0..2 {
        within(gone.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_websocket_that_is_idle_from_the_start_stays_open() {
    let address = serve("ws://127.0.0.1:0", stalling_soon(), echo()).await;
    let mut silent = open(&address).await;
    websocket_stall_goes_by(&address).await;
    let message = frame(TEXT, true, request(1, "echo", "[1]").as_bytes());
    silent.write_all(&message).await.unwrap();
    assert_eq!(next(&mut silent).await.0, TEXT);
}

#[tokio::test]
async fn a_websocket_client_that_receives_nothing_stays_open() {
    let (client, server) = accepted().await;
    stays(client, server).await;
}

#[tokio::test]
async fn a_closed_websocket_cancels_calls_beyond_the_in_flight_limit() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { in_flight: 2, stall_timeout: FOREVER, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, router).await;
    let mut stream = open(&address).await;
    for id in 0..3 {
        let message = request(id, "hold", "[]");
        stream.write_all(&frame(TEXT, true, message.as_bytes())).await.unwrap();
    }
    for _ in 0..2 {
        within(entered.recv()).await.unwrap();
    }
    drop(stream);
    for _ in 0..2 {
        within(gone.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_closed_websocket_cancels_calls_far_beyond_the_in_flight_limit() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { in_flight: 2, stall_timeout: FOREVER, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, router).await;
    let mut stream = open(&address).await;
    for id in 0..4 {
        let message = request(id, "hold", "[]");
        stream.write_all(&frame(TEXT, true, message.as_bytes())).await.unwrap();
    }
    for _ in 0..2 {
        within(entered.recv()).await.unwrap();
    }
    drop(stream);
    within(gone.recv()).await.unwrap();
}

#[tokio::test]
async fn a_close_does_not_wait_forever_for_the_close_of_the_peer() {
    let (client, _deaf) = accepted().await;
    within(client.close()).await;
}

#[tokio::test]
async fn a_message_that_the_server_rejects_is_reported_with_the_close_code() {
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, echo()).await;
    let client = Client::connect(&address).await.unwrap();
    let big = "x".repeat(4_000_000);
    let error = within(client.call::<RawJson>("echo", (big,)).into_future()).await.unwrap_err();
    assert!(ErrorChain(&error).to_string().contains("1009"), "{error}");
}

#[tokio::test]
async fn a_rejected_handshake_is_reported_with_its_status() {
    let hinted = ["200 OK", "404 Not Found", "405 Method Not Allowed", "426 Upgrade Required"];
    let others = ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "502 Bad Gateway"];
    for status in hinted.into_iter().chain(others) {
        let refusal = format!("HTTP/1.1 {status}\r\ncontent-length: 6\r\n\r\nno way");
        let (refused, _server) = answered(|_proof| refusal.into()).await;
        let error = refused.unwrap_err();
        assert!(error.contains(&format!(" responded with HTTP {status}: no way")), "{error}");
        let is_hinted = error.contains("is this a WebSocket endpoint?");
        assert_eq!(is_hinted, hinted.contains(&status), "{error}");
    }
}

/// Refuses every upgrade with this response, and keeps the connections open.
async fn refusing(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(response.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    address
}

#[tokio::test]
async fn the_status_of_a_refused_upgrade_is_known() {
    // The body has no end.
    let response = "HTTP/1.1 503 Busy\r\n\r\ncome back later";
    let server = refusing(response).await;
    let error = within(Client::connect(format!("{server}/secret"))).await.unwrap_err();
    assert_eq!(error.http_status(), Some(http::StatusCode::SERVICE_UNAVAILABLE));
    let expected = format!("{server} responded with HTTP 503 Service Unavailable: come back later");
    let told = ErrorChain(&error).to_string();
    assert!(told.ends_with(&expected), "{told}");
    // A client that gives up to reconnect has the status in the chain of causes.
    let policy = antiphon::Reconnect::new().wait_for_server().attempts(1);
    let client = Client::builder().reconnect(policy).connect(server).await.unwrap();
    let error = within(client.call::<()>("m", ()).into_future()).await.unwrap_err();
    let mut cause = std::error::Error::source(&error);
    while let Some(level) = cause
        && !level.is::<antiphon::HttpStatusError>()
    {
        cause = level.source();
    }
    let refused = cause.unwrap().downcast_ref::<antiphon::HttpStatusError>().unwrap();
    assert_eq!(refused.status, http::StatusCode::SERVICE_UNAVAILABLE);
    // Without a status there is none.
    let error = Client::connect("ws://127.0.0.1:1").await.unwrap_err();
    assert_eq!(error.http_status(), None);
}

#[tokio::test]
async fn a_handshake_without_the_accept_header_fails() {
    let deflate = "sec-websocket-extensions: permessage-deflate\r\nsec-websocket-accept";
    let cases = [
        ("accept: ", "accept: x", "`Sec-WebSocket-Accept` is"),
        ("sec-websocket-accept", "x", "`Sec-WebSocket-Accept` is"),
        (": WebSocket", ": h2c", "did not switch to WebSocket: `Upgrade` is `h2c`"),
        ("sec-websocket-accept", deflate, "permessage-deflate"),
    ];
    for (from, to, expected) in cases {
        let (refused, _server) = answered(|proof| agree(&proof).replace(from, to).into()).await;
        let error = refused.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn frames_that_arrive_with_the_handshake_are_read() {
    let (client, mut server) =
        answered(|proof| [agree(&proof).as_bytes(), &unmasked(PING, b"hi")].concat()).await;
    assert_eq!(next(&mut server).await, (PONG, b"hi".to_vec()));
    calls(client.unwrap(), server).await;
}

#[tokio::test]
async fn a_header_of_the_handshake_cannot_be_set() {
    let address = serve("ws://127.0.0.1:0", Limits::default(), echo()).await;
    for name in [http::header::HOST, http::header::UPGRADE, http::header::SEC_WEBSOCKET_KEY] {
        let value = http::HeaderValue::from_static("x");
        let error = Client::builder().header(name.clone(), value).connect(&address).await;
        let error = std::error::Error::source(&error.unwrap_err()).unwrap().to_string();
        assert!(error.contains(name.as_str()), "{error}");
    }
}

#[tokio::test]
async fn a_close_frame_is_returned_with_its_code() {
    let address = serve("ws://127.0.0.1:0", Limits::default(), echo()).await;
    for code in [1000u16, 1001, 3000] {
        let mut stream = open(&address).await;
        let goodbye = [&code.to_be_bytes(), &b"bye"[..]].concat();
        stream.write_all(&frame(CLOSE, true, &goodbye)).await.unwrap();
        assert_eq!(next(&mut stream).await, (CLOSE, code.to_be_bytes().to_vec()));
        assert_eq!(rest(&mut stream).await, b"");
    }
}

#[tokio::test]
async fn a_protocol_violation_is_closed_with_a_reason() {
    let address = serve("ws://127.0.0.1:0", Limits::default(), echo()).await;
    let reserved = [&[0xf1], &frame(TEXT, true, b"{}")[1..]].concat();
    let cases = [
        (unmasked(TEXT, b"{}"), 1002u16),
        (reserved, 1002),
        (frame(CONTINUATION, true, b"{}"), 1002),
        (frame(TEXT, true, b"\xc3\x28"), 1007),
    ];
    for (broken, code) in cases {
        let mut stream = open(&address).await;
        stream.write_all(&broken).await.unwrap();
        let (opcode, goodbye) = next(&mut stream).await;
        assert_eq!((opcode, &goodbye[..2]), (CLOSE, &code.to_be_bytes()[..]));
        assert_eq!(rest(&mut stream).await, b"");
    }
}

#[tokio::test]
async fn many_pings_at_once_are_all_answered() {
    let address = serve("ws://127.0.0.1:0", Limits::default(), echo()).await;
    let mut stream = open(&address).await;
    let pings: Vec<u8> = (0..5_000u16).flat_map(|n| frame(PING, true, &n.to_be_bytes())).collect();
    stream.write_all(&pings).await.unwrap();
    for n in 0..5_000u16 {
        assert_eq!(next(&mut stream).await, (PONG, n.to_be_bytes().to_vec()));
    }
}
