//! Malicious and broken clients. Each costs the server bounded memory and gets a clear error, and the
//! next valid call succeeds, on the same connection if the framing allows it.

use std::time::Instant;

use crate::support::{Connection, Frame, Framing, Http, PATIENCE, Server, Stream, Ws};

const MIB: usize = 1 << 20;
const EVERYWHERE: &str = "http://127.0.0.1:0 tcp://127.0.0.1:0";

/// A frame limit of 64 KiB. Larger messages must not be buffered.
const SMALL: &str = "--max-frame-bytes 65536";
/// The memory that the server may allocate with small limits. It starts with about 4 MiB.
const SMALL_MEMORY: usize = 32 * MIB;

fn lines(server: &Server) -> Stream {
    Stream::tcp(server.address("tcp"), Framing::Line)
}

fn headers(server: &Server) -> Stream {
    Stream::tcp(server.address("tcp"), Framing::Header)
}

fn http(server: &Server) -> Http {
    Http::connect(server.address("http"))
}

fn ws(server: &Server) -> Ws {
    Ws::connect(server.address("http"))
}

/// Connects over each of the four transports.
fn wires(server: &Server) -> [Box<dyn Connection>; 4] {
    [
        Box::new(http(server)),
        Box::new(ws(server)),
        Box::new(lines(server)),
        Box::new(headers(server)),
    ]
}

/// Asserts that every transport still works.
fn all_work(server: &Server) {
    for mut connection in wires(server) {
        connection.works();
    }
}

#[track_caller]
fn is_error(answer: &str, code: i32) {
    let found = answer.contains(&format!("\"error\":{{\"code\":{code},"));
    assert!(found && answer.contains("\"id\":null"), "not {code}: {answer:.300}");
}

#[test]
fn malicious_messages_are_rejected_and_the_connection_stays_usable() {
    let unclosed = "[".repeat(100_000);
    let closed = format!("{unclosed}{}", "]".repeat(100_000));
    let objects = r#"{"a":"#.repeat(100_000);
    let in_params = format!(r#"{{"jsonrpc":"2.0","method":"echo","params":{closed},"id":1}}"#);
    let megabytes = "[{\"a\":".repeat(3 * MIB / 6);
    let batch = format!("[{}1]", "1,".repeat(99_999));
    let quotes = "\\\"".repeat(MIB);

    let server = Server::start(EVERYWHERE, "");
    for mut connection in wires(&server) {
        for bomb in [&unclosed, &closed, &objects, &in_params, &megabytes, &quotes] {
            is_error(&connection.ask(bomb), -32700);
            connection.works();
        }
        is_error(&connection.ask(&batch), -32010);
        connection.works();
        connection.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xC3\x28\",\"id\":1}").unwrap();
        is_error(&String::from_utf8(connection.receive().unwrap()).unwrap(), -32700);
        connection.works();
    }
    server.held_at_most(64 * MIB);
}

#[test]
fn an_announced_gibibyte_is_rejected_before_it_is_sent() {
    let server = Server::start(EVERYWHERE, "");
    let mut stream = headers(&server);
    stream.raw(b"Content-Length: 1073741824\r\n\r\n{").unwrap();
    is_error(&String::from_utf8(stream.receive().unwrap()).unwrap(), -32007);

    let mut post = http(&server);
    post.head("POST", "content-type: application/json\r\n", 1 << 30).unwrap();
    let refused = post.answer().unwrap();
    assert_eq!(refused.status, 413);
    is_error(&refused.body, -32007);

    let mut socket = ws(&server);
    socket.raw(&[0x81, 0xFF, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4]).unwrap();
    assert_eq!(socket.frame().unwrap(), Frame::Close(1009));

    server.held_at_most(SMALL_MEMORY);
    all_work(&server);
}

#[test]
fn an_endless_line_is_not_buffered() {
    let server = Server::start(EVERYWHERE, SMALL);
    for byte in *b"x[ \"" {
        let mut stream = lines(&server);
        send_endlessly(|piece| stream.raw(piece), byte);
        stream.raw(b"\n").unwrap();
        // A line of white space is an empty message.
        let code = if byte == b' ' { -32700 } else { -32007 };
        is_error(&String::from_utf8(stream.receive().unwrap()).unwrap(), code);
        stream.works();
    }
    server.held_at_most(SMALL_MEMORY);
    all_work(&server);
}

#[test]
fn a_body_over_the_limit_is_skipped_and_the_stream_stays_usable() {
    let server = Server::start(EVERYWHERE, SMALL);
    let mut stream = headers(&server);
    stream.raw(format!("Content-Length: {}\r\n\r\n", 128 * MIB).as_bytes()).unwrap();
    send_endlessly(|piece| stream.raw(piece), b'{');
    is_error(&String::from_utf8(stream.receive().unwrap()).unwrap(), -32007);
    stream.works();
    server.held_at_most(SMALL_MEMORY);
    all_work(&server);
}

#[test]
fn an_endless_header_is_not_buffered() {
    let server = Server::start(EVERYWHERE, SMALL);
    let mut stream = headers(&server);
    stream.raw(b"Content-Type: ").unwrap();
    send_endlessly(|piece| stream.raw(piece), b'x');
    is_error(&String::from_utf8(stream.receive().unwrap()).unwrap(), -32700);
    stream.works();

    let mut post = http(&server);
    post.raw(b"POST / HTTP/1.1\r\nhost: localhost\r\nx: ").unwrap();
    let _cut_off = (0..128).try_for_each(|_| post.raw(&[b'x'; MIB]));
    // The response may be lost with the connection, but the connection must end.
    assert!(post.answer().is_err() || post.answer().is_err(), "the connection goes on");

    server.held_at_most(SMALL_MEMORY);
    all_work(&server);
}

#[test]
fn an_endless_body_is_not_buffered() {
    let server = Server::start(EVERYWHERE, SMALL);
    let mut post = http(&server);
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    post.raw(head.as_bytes()).unwrap();
    let chunk = [b"100000\r\n", &[b'['; MIB][..], b"\r\n"].concat();
    let _cut_off = (0..128).try_for_each(|_| post.raw(&chunk));

    let mut socket = ws(&server);
    let _cut_off = socket
        .raw(&Ws::framed(0x01, b"["))
        .and_then(|()| (0..4096).try_for_each(|_| socket.raw(&Ws::framed(0, &[b'['; 32 << 10]))));
    server.held_at_most(SMALL_MEMORY);
    all_work(&server);
}

/// Sends one byte 128 Mi times, in pieces.
fn send_endlessly(mut send: impl FnMut(&[u8]) -> Result<(), String>, byte: u8) {
    let piece = vec![byte; MIB];
    for _ in 0..128 {
        send(&piece).unwrap();
    }
}

#[test]
fn a_stalled_message_ends_its_connection() {
    let server = Server::start(EVERYWHERE, "--handshake-timeout 300ms --stall-timeout 300ms");
    for (begun, framing) in [
        ("{\"jsonrpc\":", Framing::Line),
        ("Content-Length: 100\r\n\r\n{", Framing::Header),
        ("Content-Le", Framing::Header),
    ] {
        let mut stream = Stream::tcp(server.address("tcp"), framing);
        stream.works();
        stream.raw(begun.as_bytes()).unwrap();
        closes(&mut stream);

        // Like above, with a complete message in the same packet.
        let mut stream = Stream::tcp(server.address("tcp"), framing);
        let whole = stream.framed(br#"{"jsonrpc":"2.0","method":"echo","id":1}"#);
        stream.raw(&[&whole, begun.as_bytes()].concat()).unwrap();
        assert_eq!(stream.receive().unwrap(), br#"{"jsonrpc":"2.0","result":null,"id":1}"#);
        closes(&mut stream);
    }
    let mut socket = ws(&server);
    socket.works();
    socket.raw(&Ws::framed(0x81, b"[1,2]")[..4]).unwrap();
    closes(&mut socket);

    let mut post = http(&server);
    post.head("POST", "content-type: application/json\r\n", 100).unwrap();
    post.raw(b"{").unwrap();
    assert_eq!(post.answer().unwrap().status, 408);
    all_work(&server);
}

/// Each byte arrives within the timeout, so a timeout per read would not fire. The whole header must
/// arrive in time.
#[test]
fn a_header_sent_byte_by_byte_ends_its_connection() {
    let server = Server::start(EVERYWHERE, "--handshake-timeout 300ms");
    let mut post = http(&server);
    let started = Instant::now();
    post.raw(b"POST / HTTP/1.1\r\nx: ").unwrap();
    while !post.ends_after_one_more(b"x") {
        assert!(started.elapsed() < PATIENCE, "the server waits for the header forever");
    }
    all_work(&server);
}

/// Asserts that the server closes the connection, possibly after more messages.
#[track_caller]
fn closes(connection: &mut impl Connection) {
    let mut said = String::new();
    for _ in 0..3 {
        match connection.receive() {
            Ok(message) => said.push_str(&String::from_utf8_lossy(&message)),
            Err(fault) if fault.contains("closed") || fault.contains("Close") => return,
            Err(fault) => panic!("{fault}; before that: {said}"),
        }
    }
    panic!("the connection goes on: {said}");
}

#[test]
fn a_client_that_disconnects_within_a_message_frees_its_slot() {
    let server = Server::start(EVERYWHERE, "--max-connections 64");
    for _ in 0..50 {
        lines(&server).raw(b"{\"jsonrpc\":\"2.0\",\"meth").unwrap();
        headers(&server).raw(b"Content-Length: 100\r\n\r\n{\"json").unwrap();
        ws(&server).raw(&Ws::framed(0x81, b"{\"jsonrpc\":\"2.0\"")[..9]).unwrap();
        let mut post = http(&server);
        post.head("POST", "content-type: application/json\r\n", 100).unwrap();
        post.raw(b"{\"jsonrpc\"").unwrap();
        all_work(&server);
    }
}

#[test]
fn a_connection_over_the_limit_gets_an_error_and_slots_are_reused() {
    let server = Server::start(EVERYWHERE, "--max-connections 2");
    let (mut one, mut two) = (lines(&server), ws(&server));
    one.works();
    two.works();

    let mut third = lines(&server);
    is_error(&String::from_utf8(third.receive().unwrap()).unwrap(), -32009);
    closes(&mut third);
    let refused = http(&server).post(b"{}");
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    is_error(&refused.body, -32009);

    one.works();
    drop(two);
    let started = Instant::now();
    while http(&server).post(b"1").status == 503 {
        assert!(started.elapsed() < PATIENCE, "a closed connection still counts");
    }
    one.works();
}
