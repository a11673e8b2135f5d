//! Hand-written servers that can send any bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

pub(super) const HELLO: &str = r#"{"jsonrpc":"2.0","result":"hello","id":"#;

/// Starts a server that passes each connection to `serve`.
pub(super) fn server(
    scheme: &str,
    serve: impl Fn(BufReader<TcpStream>) -> Option<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        thread::scope(|scope| {
            for socket in listener.incoming().map_while(Result::ok) {
                let serve = &serve;
                scope.spawn(move || serve(BufReader::new(socket)));
            }
        });
    });
    endpoint
}

/// Starts a TCP server that replies to the id of each line with this text.
pub(super) fn lines(answer: fn(u64) -> String) -> String {
    server("tcp", move |mut socket| {
        loop {
            let id = line_id(&mut socket)?;
            socket.get_mut().write_all(answer(id).as_bytes()).ok()?;
        }
    })
}

/// Starts an HTTP server that replies to the id of each POST with this text and may then close.
pub(super) fn web(answer: fn(u64) -> String, closes: bool) -> String {
    server("http", move |mut socket| {
        loop {
            let id = post_id(&mut socket)?;
            socket.get_mut().write_all(answer(id).as_bytes()).ok()?;
            if closes {
                return None;
            }
        }
    })
}

pub(super) fn line_id(socket: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut line = String::new();
    socket.read_line(&mut line).ok()?;
    id_of(&line)
}

pub(super) fn post_id(socket: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some(("content-length", digits)) => length = digits.parse().ok()?,
            None if line == "\r\n" => break,
            None if line.is_empty() => return None,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).ok()?;
    id_of(std::str::from_utf8(&body).ok()?)
}

/// Returns the first id of a message.
pub(super) fn id_of(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("\"id\":")?;
    rest.split_once('}')?.0.parse().ok()
}

pub(super) fn hello(id: u64) -> String {
    format!("{HELLO}{id}}}")
}

pub(super) fn hello_line(id: u64) -> String {
    hello(id) + "\n"
}

pub(super) fn ok(head: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
}
