//! What only WebSockets do, frame by frame.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{Client, Context, Limits, RawJson, Router};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_websockets::{Message, ServerBuilder, WebSocketStream};

use crate::support::{
    FOREVER, Holding, answer, dial, holding, request, rest, serve, stall_goes_by, within,
};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// One frame of a client, masked with zeros.
fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode | if last { 0x80 } else { 0 }];
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// A WebSocket whose handshake is done, for frames of any kind.
async fn open(address: &str) -> BufReader<TcpStream> {
    let mut stream = dial(address).await;
    let handshake = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
        upgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(handshake.as_bytes()).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        within(stream.read_line(&mut head)).await.unwrap();
    }
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream
}

/// The next frame of the server: its opcode and what it holds.
async fn next(stream: &mut BufReader<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    within(stream.read_exact(&mut head)).await.expect("the connection is open");
    let length = match head[1] {
        126 => usize::from(within(stream.read_u16()).await.unwrap()),
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    within(stream.read_exact(&mut payload)).await.unwrap();
    (head[0] & 0x0f, payload)
}

fn echo() -> Router {
    Router::new().method("echo", |params: RawJson, _cx: Context| async move { Ok(params) })
}

fn stalling_soon() -> Limits {
    Limits { stall_timeout: Duration::from_millis(40), ..Limits::default() }
}

/// Lets the stall timeout go by on a server, twice: half a frame is the clock.
async fn websocket_stall_goes_by(address: &str) {
    for _ in 0..2 {
        let mut stalled = open(address).await;
        let whole = frame(TEXT, true, request(1, "echo", "[]").as_bytes());
        stalled.write_all(&whole[..whole.len() / 2]).await.unwrap();
        rest(&mut stalled).await;
    }
}

/// A client, and the other end of its WebSocket.
async fn accepted() -> (Client, WebSocketStream<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    let connecting = Client::builder().limits(stalling_soon()).connect(&address);
    let accepting = async {
        let (stream, _) = listener.accept().await.unwrap();
        ServerBuilder::new().accept(stream).await.unwrap().1
    };
    let (client, server) = within(async { tokio::join!(connecting, accepting) }).await;
    (client.unwrap(), server)
}

/// A stall goes by, and the client is still there.
async fn stays(client: Client, mut server: WebSocketStream<TcpStream>) {
    let clock = serve("tcp://127.0.0.1:0", stalling_soon(), Router::new()).await;
    stall_goes_by(&clock).await;
    let call = tokio::spawn(client.call::<u64>("ask", ()).into_future());
    let question = within(server.next()).await.expect("the client is there").unwrap();
    let question: serde_json::Value = serde_json::from_slice(question.as_payload()).unwrap();
    server.send(Message::text(answer(&question["id"], "5"))).await.unwrap();
    assert_eq!(within(call).await.unwrap().unwrap(), 5);
}

#[tokio::test]
async fn a_websocket_that_is_silent_after_a_ping_or_a_message_lives() {
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
async fn a_websocket_client_that_hears_a_ping_lives() {
    let (client, mut server) = accepted().await;
    server.send(Message::ping("hi")).await.unwrap();
    assert!(within(server.next()).await.unwrap().unwrap().is_pong());
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
    }
}

#[tokio::test]
async fn fragments_over_the_limit_are_never_served() {
    let limits = Limits { frame_bytes: 120, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, echo()).await;
    let start = frame(TEXT, false, br#"{"jsonrpc":"2.0","method":"echo","params":["a"#);
    let (middle, end) = ([b'B'; 100], br#"z"],"id":7}"#);
    let cases = [
        // Without the middle it would be a request.
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
async fn a_websocket_that_goes_cancels_what_runs_at_the_in_flight_limit() {
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
async fn a_websocket_that_is_silent_from_the_start_lives() {
    let address = serve("ws://127.0.0.1:0", stalling_soon(), echo()).await;
    let mut silent = open(&address).await;
    websocket_stall_goes_by(&address).await;
    let message = frame(TEXT, true, request(1, "echo", "[1]").as_bytes());
    silent.write_all(&message).await.unwrap();
    assert_eq!(next(&mut silent).await.0, TEXT);
}

#[tokio::test]
async fn a_websocket_client_that_hears_nothing_lives() {
    let (client, server) = accepted().await;
    stays(client, server).await;
}

#[tokio::test]
async fn a_websocket_that_goes_cancels_what_runs_beyond_the_in_flight_limit() {
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
async fn a_websocket_that_goes_cancels_what_runs_far_beyond_the_in_flight_limit() {
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
async fn a_goodbye_that_is_never_returned_is_not_waited_for() {
    let (client, _deaf) = accepted().await;
    within(client.close()).await;
}

#[tokio::test]
async fn a_message_that_the_server_refuses_is_named_by_its_close_code() {
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let address = serve("ws://127.0.0.1:0", limits, echo()).await;
    let client = Client::connect(&address).await.unwrap();
    let big = "x".repeat(4_000_000);
    let error = within(client.call::<RawJson>("echo", (big,)).into_future()).await.unwrap_err();
    assert!(error.to_string().contains("1009"), "{error}");
}
