//! A server of one connection whose messages are written by hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use super::{Framing, PATIENCE};

/// Accepts one connection, records every message, and sends what `respond` returns for it.
pub(crate) struct FakeServer {
    port: u16,
    record: Receiver<Vec<Value>>,
}

impl FakeServer {
    pub(crate) fn start(
        framing: Framing,
        mut respond: impl FnMut(&Value) -> Vec<String> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (done, record) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let mut seen = Vec::new();
            while let Some(message) = receive(framing, &mut input) {
                for reply in respond(&message) {
                    let _ = match framing {
                        Framing::Header => {
                            write!(stream, "Content-Length: {}\r\n\r\n{reply}", reply.len())
                        }
                        _ => writeln!(stream, "{reply}"),
                    };
                }
                seen.push(message);
            }
            let _ = done.send(seen);
        });
        Self { port, record }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The endpoint, without a framing.
    pub(crate) fn endpoint(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }

    /// Returns its messages, after the client has closed the connection.
    pub(crate) fn record(self) -> Vec<Value> {
        self.record.recv_timeout(PATIENCE).expect("the client closes the connection")
    }
}

fn receive(framing: Framing, input: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut line = String::new();
    if input.read_line(&mut line).ok()? == 0 {
        return None;
    }
    if let Framing::Header = framing {
        let length = line.trim().strip_prefix("Content-Length: ")?.parse().unwrap();
        let mut end = String::new();
        input.read_line(&mut end).unwrap();
        assert_eq!(end.trim(), "");
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        return Some(serde_json::from_slice(&body).unwrap());
    }
    Some(serde_json::from_str(&line).unwrap())
}

/// Returns the response to a request with this result, or nothing for another message.
pub(crate) fn result(message: &Value, result: &str) -> Vec<String> {
    match (&message["method"], &message["id"]) {
        (Value::String(_), id) if !id.is_null() => {
            vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)]
        }
        _ => Vec::new(),
    }
}

/// Returns the methods of the messages, and `-` for a response.
pub(crate) fn methods(record: &[Value]) -> Vec<&str> {
    record.iter().map(|message| message["method"].as_str().unwrap_or("-")).collect()
}
