//! A small, correct client with one optional fault.
//!
//! It has two calls in flight on a raw stream, and uses blocking sockets.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::process::exit;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::endpoint;

/// The environment variable with the name of the fault.
pub(super) const FAULT: &str = "ANTIPHON_MUTANT";

#[test]
#[ignore = "a client, which check-client starts"]
fn client() {
    let fault = std::env::var(FAULT).unwrap_or_default();
    let endpoint = endpoint().unwrap();
    let (scheme, address) = endpoint.split_once("://").unwrap();
    loop {
        match Mutant::new(&fault, address, scheme == "tcp+header").and_then(Mutant::run) {
            Ok(()) => exit(0),
            Err(reason) if fault == "tries-for-ever" => eprintln!("{reason}"),
            Err(reason) => {
                eprintln!("{reason}");
                exit(1)
            }
        }
        sleep(Duration::from_millis(10));
    }
}

struct Mutant<'a> {
    fault: &'a str,
    socket: TcpStream,
    has_headers: bool,
    buffer: Vec<u8>,
    /// The ids of the calls in flight.
    waiting: Vec<Value>,
}

type Outcome<T> = Result<T, String>;

impl<'a> Mutant<'a> {
    fn new(fault: &'a str, address: &str, has_headers: bool) -> Outcome<Self> {
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Ok(Self { fault, socket, has_headers, buffer: Vec::new(), waiting: Vec::new() })
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn run(mut self) -> Outcome<()> {
        self.waiting = match self.fault {
            "same-ids" => vec![json!(1), json!(1)],
            "null-id" => vec![json!(null)],
            "array-id" => vec![json!([1])],
            "half-id" => vec![json!(1.5)],
            // Without newlines, two calls in flight would be indistinguishable.
            "no-newline" => vec![json!(1)],
            _ => vec![json!(1), json!(2)],
        };
        let scenario = std::env::var("ANTIPHON_SCENARIO").unwrap_or_default();
        self.call(&scenario)?;
        while self.has("floods") && scenario == "answer-late" {
            let request = self.request(&json!(1));
            self.send(&request)?;
        }
        while !self.waiting.is_empty() {
            let message = self.receive()?;
            self.take(&message)?;
        }
        Ok(())
    }

    /// Sends the calls in one write, so that all of them are in flight at once.
    fn call(&mut self, scenario: &str) -> Outcome<()> {
        // Two ordinary responses may arrive in one read, which is the fault.
        if self.has("one-read") && scenario == "ordinary-call" {
            return self.call_in_turn();
        }
        let requests = self.waiting.iter().flat_map(|id| self.framed(&self.request(id)));
        let requests: Vec<u8> = requests.collect();
        self.write(&requests)
    }

    fn call_in_turn(&mut self) -> Outcome<()> {
        for id in std::mem::take(&mut self.waiting) {
            let request = self.request(&id);
            self.waiting.push(id);
            self.send(&request)?;
            let message = self.receive()?;
            self.take(&message)?;
        }
        Ok(())
    }

    fn request(&self, id: &Value) -> Vec<u8> {
        let mut request = json!({"jsonrpc": "2.0", "method": "echo", "params": ["é"], "id": id});
        match self.fault {
            "no-jsonrpc" => drop(request.as_object_mut().unwrap().remove("jsonrpc")),
            "version-1" => request["jsonrpc"] = json!("1.0"),
            "null-params" => request["params"] = Value::Null,
            "number-as-method" => request["method"] = json!(1),
            "more-members" => request["trace"] = json!("x"),
            "reserved-name" => request["method"] = json!("rpc.echo"),
            _ => {}
        }
        let text = request.to_string();
        match self.fault {
            "members-twice" => text.replacen('{', "{\"id\":0,", 1).into_bytes(),
            "latin-1" => {
                // Sent first, so that the client can still make the call itself.
                let mut broken = b"{\"jsonrpc\":\"2.0\",\"method\":\"\xe9\"}\n".to_vec();
                broken.extend_from_slice(text.as_bytes());
                broken
            }
            _ => text.into_bytes(),
        }
    }

    fn framed(&self, message: &[u8]) -> Vec<u8> {
        if self.has_headers {
            return [format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes(), message]
                .concat();
        }
        let end: &[u8] = if self.has("no-newline") { b"" } else { b"\n" };
        [message, end].concat()
    }

    fn send(&mut self, message: &[u8]) -> Outcome<()> {
        self.write(&self.framed(message))
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.socket.write_all(bytes).map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Outcome<Vec<u8>> {
        // Small pieces would be slow: each of them is searched from the beginning of the message.
        let mut piece = vec![0; 1 << 16];
        loop {
            if let Some(message) = self.message()? {
                return Ok(message);
            }
            match self.socket.read(&mut piece) {
                Ok(0) => return self.gone(),
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.has("small-buffer") && self.buffer.len() > 1 << 16 {
                return Err("too much".to_owned());
            }
        }
    }

    fn gone(&self) -> Outcome<Vec<u8>> {
        while self.has("waits-for-ever") {
            sleep(Duration::from_secs(1));
        }
        if self.has("end-is-fine") {
            exit(0);
        }
        Err("the server is gone".to_owned())
    }

    /// Returns the first message in the buffer.
    fn message(&mut self) -> Outcome<Option<Vec<u8>>> {
        if self.has("one-read") && !self.buffer.is_empty() {
            return Ok(Some(std::mem::take(&mut self.buffer)));
        }
        if self.has_headers {
            return self.with_header();
        }
        let end = self.buffer.iter().position(|byte| *byte == b'\n');
        Ok(end.map(|end| self.buffer.drain(..=end).collect()))
    }

    fn with_header(&mut self) -> Outcome<Option<Vec<u8>>> {
        let Some(at) = self.buffer.windows(4).position(|part| part == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&self.buffer[..at]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|n| n.parse().ok()).ok_or("there is no length")?;
        if self.has("makes-room") {
            let room = vec![b'x'; length];
            eprintln!("room for {}", room.len());
        }
        if self.buffer.len() < at + 4 + length {
            return Ok(None);
        }
        let message = self.buffer[at + 4..at + 4 + length].to_vec();
        self.buffer.drain(..at + 4 + length);
        Ok(Some(message))
    }

    fn take(&mut self, message: &[u8]) -> Outcome<()> {
        let text = String::from_utf8_lossy(message);
        let message: Value = serde_json::from_slice(message).map_err(|error| error.to_string())?;
        if self.has("fixed-places") && !text.starts_with("{\"jsonrpc\":\"2.0\",") {
            return Err("it does not begin as it should".to_owned());
        }
        if self.has("no-escapes") && !text.contains("\"result\"") && !text.contains("\"error\"") {
            return Err("neither result nor error".to_owned());
        }
        if self.has("too-deep") && text.contains("[[[[[[[[[[[[[[[[") {
            return Err("nested too deeply".to_owned());
        }
        if message.get("method").is_some() {
            return self.asked(&message);
        }
        self.answered(&message)
    }

    /// Handles a Request or a Notification of the server.
    fn asked(&mut self, message: &Value) -> Outcome<()> {
        let id = message.get("id");
        if self.has("requests-are-answers") && id.is_some_and(|id| self.waiting.contains(id)) {
            self.waiting.retain(|waiting| Some(waiting) != id);
            return Ok(());
        }
        if id.is_none() && self.has("no-notifications") {
            return Err("a message without an id".to_owned());
        }
        if id.is_none() && !self.has("answers-notifications") {
            return Ok(());
        }
        let mut reply =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "?"}});
        if self.has("half-a-reply") {
            reply["error"] = json!("what?");
        }
        self.send(reply.to_string().as_bytes())
    }

    fn answered(&mut self, message: &Value) -> Outcome<()> {
        let id = message.get("id").ok_or("there is no id")?;
        if message["jsonrpc"] != "2.0" && !self.has("any-version") {
            return Err("it is not version 2.0".to_owned());
        }
        let Some(place) = self.place(id) else {
            return match id {
                Value::Null if self.has("latin-1") => Ok(()),
                Value::Null => Err("an error without an id".to_owned()),
                _ if self.has("no-strangers") => Err("an unknown id".to_owned()),
                _ => Ok(()),
            };
        };
        if place > 0 && self.has("in-order") {
            return Err("out of order".to_owned());
        }
        self.waiting.remove(place);
        self.outcome(message)
    }

    /// Returns the call of a response.
    fn place(&self, id: &Value) -> Option<usize> {
        let plain = |id: &Value| id.to_string().replace('"', "");
        self.waiting.iter().position(|waiting| match self.fault {
            "any-id" => true,
            "ids-as-text" => plain(waiting) == plain(id),
            _ => waiting == id,
        })
    }

    fn outcome(&self, message: &Value) -> Outcome<()> {
        let (mut result, mut error) = (message.get("result"), message.get("error"));
        match self.fault {
            "errors-are-results" => return Ok(()),
            "result-first" if result.is_some() => return Ok(()),
            "null-is-none" => result = result.filter(|result| !result.is_null()),
            "false-is-none" => result = result.filter(|result| *result != false),
            "zero-is-fine" => error = error.filter(|error| error["code"] != 0),
            "no-message-is-fine" => error = error.filter(|error| error["message"] != ""),
            "crashes-on-data" if error.is_some_and(|error| error["data"].is_object()) => {
                std::process::abort()
            }
            _ => {}
        }
        match (result, error) {
            (_, Some(error)) => Err(format!("error: {error}")),
            (Some(_), None) => Ok(()),
            (None, None) if self.has("neither-is-fine") => Ok(()),
            (None, None) if self.has("zero-is-fine") || self.has("no-message-is-fine") => {
                message.get("error").map(|_| ()).ok_or("neither".to_owned())
            }
            (None, None) => Err("neither result nor error".to_owned()),
        }
    }
}
