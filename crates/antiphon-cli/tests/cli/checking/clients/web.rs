//! Small, correct clients for HTTP and WebSocket with one optional fault.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::exit;
use std::time::Duration;

use serde_json::Value;

use super::endpoint;
use super::mutant::FAULT;

const CALL: &str = r#"{"jsonrpc":"2.0","method":"echo","params":["x"],"id":1}"#;
/// The key and the proof of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

type Outcome<T> = Result<T, String>;

#[test]
#[ignore = "a client, which check-client starts"]
fn client() {
    let fault = std::env::var(FAULT).unwrap_or_default();
    let endpoint = endpoint().unwrap();
    let (scheme, address) = endpoint.split_once("://").unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut wire = Wire { fault: &fault, socket, buffer: Vec::new() };
    let answer = if scheme == "ws" { wire.websocket() } else { wire.http() };
    match answer.and_then(|answer| judge(&answer)) {
        Ok(()) => exit(0),
        Err(reason) => {
            eprintln!("{reason}");
            exit(1)
        }
    }
}

fn judge(answer: &[u8]) -> Outcome<()> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let is_ours = answer["jsonrpc"] == "2.0" && answer["id"] == 1;
    let is_result = answer.get("result").is_some() && answer.get("error").is_none();
    if is_ours && is_result { Ok(()) } else { Err(format!("no result: {answer}")) }
}

/// Reports whether it is the response to this call, and not an unsolicited message.
fn is_for_us(message: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    message.get("method").is_none() && (message["id"] == 1 || message["id"].is_null())
}

struct Wire<'a> {
    fault: &'a str,
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Wire<'_> {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.socket.write_all(bytes).map_err(|error| error.to_string())
    }

    /// Reads more bytes. Returns false at the end.
    fn more(&mut self) -> Outcome<bool> {
        let mut piece = vec![0; 1 << 16];
        let read = self.socket.read(&mut piece).map_err(|error| error.to_string())?;
        self.buffer.extend_from_slice(&piece[..read]);
        Ok(read > 0)
    }

    /// Reads this many bytes.
    fn take(&mut self, count: usize) -> Outcome<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more()? {
                return Err("the server is gone".to_owned());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// Reads up to this text, and includes it.
    fn until(&mut self, end: &[u8]) -> Outcome<String> {
        loop {
            let found = self.buffer.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                let taken = self.take(at + end.len())?;
                return Ok(String::from_utf8_lossy(&taken).into_owned());
            }
            if !self.more()? {
                return Err("the server is gone".to_owned());
            }
        }
    }

    fn http(&mut self) -> Outcome<Vec<u8>> {
        let host = if self.has("no-host") { "" } else { "host: h\r\n" };
        let kind = if self.has("no-type") { "" } else { "content-type: application/json\r\n" };
        let accept = if self.has("wants-pages") { "text/html" } else { "application/json" };
        let length = CALL.len();
        let head = format!(
            "POST / HTTP/1.1\r\n{host}{kind}accept: {accept}\r\ncontent-length: {length}\r\n\r\n{CALL}"
        );
        self.write(head.as_bytes())?;
        let mut head = self.until(b"\r\n\r\n")?;
        while head.starts_with("HTTP/1.1 1") && !self.has("takes-interim") {
            head = self.until(b"\r\n\r\n")?;
        }
        self.body(&head)
    }

    fn body(&mut self, head: &str) -> Outcome<Vec<u8>> {
        let head = if self.has("one-case") { head.to_owned() } else { head.to_ascii_lowercase() };
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        if head.contains(" 204 ") && self.has("nothing-is-fine") {
            exit(0);
        }
        if value("transfer-encoding:").is_some() && !self.has("no-chunks") {
            return self.chunks();
        }
        match value("content-length:") {
            Some(length) => {
                let length = length.parse().map_err(|_| "no length".to_owned())?;
                if length > 1 << 24 { Err("too long".to_owned()) } else { self.take(length) }
            }
            None if self.has("no-chunks") || self.has("one-case") => Err("no length".to_owned()),
            None => {
                while self.more()? {}
                Ok(std::mem::take(&mut self.buffer))
            }
        }
    }

    fn chunks(&mut self) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n")?;
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|error| error.to_string())?;
            body.extend(self.take(size)?);
            self.take(2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn websocket(&mut self) -> Outcome<Vec<u8>> {
        let version = if self.has("old-version") { 8 } else { 13 };
        let head = format!(
            "GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: {version}\r\nsec-websocket-key: {KEY}\r\n\r\n"
        );
        self.write(head.as_bytes())?;
        let head = self.until(b"\r\n\r\n")?;
        if !head.contains(PROOF) && !self.has("no-proof") {
            return Err("the handshake is not proven".to_owned());
        }
        let opcode = if self.has("binary") { 2 } else { 1 };
        self.frame(opcode, CALL.as_bytes())?;
        let mut message = Vec::new();
        loop {
            let (first, payload) = self.next_frame()?;
            match first & 0x0F {
                8 => {
                    if !self.has("no-goodbye") {
                        self.frame(8, &payload)?;
                    }
                    return Err("closed".to_owned());
                }
                9 if self.has("no-pong") => {}
                9 => self.frame(10, &payload)?,
                10 => {}
                _ => {
                    message.extend(payload);
                    let is_whole = first & 0x80 != 0 || self.has("no-fragments");
                    if is_whole && is_for_us(&message) {
                        return Ok(message);
                    }
                    if is_whole {
                        message.clear();
                    }
                }
            }
        }
    }

    fn next_frame(&mut self) -> Outcome<(u8, Vec<u8>)> {
        let head = self.take(2)?;
        if head[0] & 0x70 != 0 && !self.has("any-bits") {
            return Err("reserved bits".to_owned());
        }
        let is_masked = head[1] & 0x80 != 0;
        if is_masked && !self.has("takes-masked") {
            return Err("a masked frame".to_owned());
        }
        let length = match head[1] & 0x7F {
            126 => self.take(2)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
            127 => self.take(8)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
            short => short.into(),
        };
        let mask = if is_masked { self.take(4)? } else { vec![0; 4] };
        let mut payload = self.take(length)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
        Ok((head[0], payload))
    }

    fn frame(&mut self, opcode: u8, payload: &[u8]) -> Outcome<()> {
        let mask = if self.has("unmasked") { None } else { Some([7, 1, 9, 3]) };
        let mut frame = vec![0x80 | opcode, payload.len() as u8 | mask.map_or(0, |_| 0x80)];
        frame.extend(mask.iter().flatten());
        let key = mask.unwrap_or_default();
        frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        self.write(&frame)
    }
}
