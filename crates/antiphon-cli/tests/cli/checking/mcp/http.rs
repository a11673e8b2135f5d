//! The MCP server over Streamable HTTP. Calls of tools and subscriptions are answered by event streams.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::fault::Fault;
use super::reference::{Era, MODERN, Reference, Session, Surroundings, error};

/// The sessions of a legacy server.
#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, usize>>,
    next: AtomicUsize,
}

/// An HTTP request.
struct Request {
    verb: String,
    /// Names in lower case.
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| &**value)
    }

    fn read(reader: &mut BufReader<&TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let verb = line.split(' ').next().filter(|verb| !verb.is_empty())?.to_owned();
        let mut headers = HashMap::new();
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(Self { verb, headers, body })
    }
}

/// A response.
struct Response {
    status: u16,
    session: Option<String>,
    body: Option<Value>,
}

impl Response {
    fn empty(status: u16) -> Self {
        Self { status, session: None, body: None }
    }

    fn refused(status: u16, id: &Value, code: i64) -> Self {
        Self { status, session: None, body: Some(error(id, code)) }
    }

    fn write(&self, mut socket: &TcpStream, kind: &str) -> std::io::Result<()> {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} x\r\ncontent-length: {}\r\n", self.status, body.len());
        if !body.is_empty() {
            head.push_str(&format!("content-type: {kind}\r\n"));
        }
        if let Some(session) = &self.session {
            head.push_str(&format!("mcp-session-id: {session}\r\n"));
        }
        socket.write_all(format!("{head}\r\n{body}").as_bytes())
    }
}

/// Serves the requests of one connection.
pub(super) fn serve(socket: &TcpStream, reference: Reference, sessions: &Sessions) {
    let mut reader = BufReader::new(socket);
    while let Some(request) = Request::read(&mut reader) {
        let exchange = Exchange { socket, reference, sessions, request: &request };
        if exchange.run().is_err() {
            return;
        }
    }
}

/// One request and its response.
struct Exchange<'a> {
    socket: &'a TcpStream,
    reference: Reference,
    sessions: &'a Sessions,
    request: &'a Request,
}

impl Exchange<'_> {
    fn has(&self, fault: Fault) -> bool {
        self.reference.has(fault)
    }

    fn run(&self) -> std::io::Result<()> {
        let kind =
            if self.has(Fault::ContentTypeIsText) { "text/plain" } else { "application/json" };
        match self.refusal() {
            Some(refusal) => refusal.write(self.socket, kind),
            None => self.message(kind),
        }
    }

    /// Checks the request without its body.
    fn refusal(&self) -> Option<Response> {
        let request = self.request;
        if request.header("origin").is_some() && !self.has(Fault::OriginIsNotChecked) {
            return Some(Response::empty(403));
        }
        if !request.header("host").unwrap_or_default().starts_with("127.0.0.1") {
            return Some(Response::empty(403));
        }
        match (&*request.verb, self.reference.era) {
            ("POST", _) => {}
            ("DELETE", Era::Legacy) => {
                let session = request.header("mcp-session-id").unwrap_or_default();
                // A shared session has other clients.
                if !self.has(Fault::SessionSurvives) && !self.has(Fault::SessionIsShared) {
                    self.sessions.open.lock().unwrap().remove(session);
                }
                return Some(Response::empty(204));
            }
            ("GET", _) if self.has(Fault::GetIs404) => return Some(Response::empty(404)),
            _ => return Some(Response::empty(405)),
        }
        if request.header("content-type") != Some("application/json") {
            return Some(Response::empty(415));
        }
        None
    }

    fn message(&self, kind: &str) -> std::io::Result<()> {
        let respond = |response: Response| response.write(self.socket, kind);
        let message = match serde_json::from_slice::<Value>(&self.request.body) {
            Ok(message) if message.is_object() => message,
            Ok(_) => return respond(Response::refused(400, &Value::Null, -32600)),
            Err(_) => return respond(Response::refused(400, &Value::Null, -32700)),
        };
        let checked = match self.reference.era {
            Era::Legacy => self.legacy(&message),
            Era::Modern => self.modern(&message).map(|()| (None, Session::default())),
        };
        let (key, mut session) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return respond(refusal),
        };
        if message.get("id").is_none() || message.get("method").is_none() {
            let status = if self.has(Fault::NotificationIs200) { 200 } else { 202 };
            return respond(Response::empty(status));
        }
        if matches!(message["method"].as_str(), Some("tools/call" | "subscriptions/listen")) {
            return self.stream(&message, &mut session);
        }
        let answer = self.reference.answer(&message, &mut session, &mut Nobody);
        if let Some(key) = &key {
            self.sessions.open.lock().unwrap().insert(key.clone(), session.level);
        }
        let is_new = message["method"] == "initialize" && self.reference.era == Era::Legacy;
        let session = key.filter(|_| is_new);
        respond(Response { status: self.status(answer.as_ref()), session, body: answer })
    }

    /// Returns the status of a response.
    fn status(&self, answer: Option<&Value>) -> u16 {
        let code = answer.and_then(|answer| answer["error"]["code"].as_i64());
        match (self.reference.era, code) {
            (_, Some(-32600)) => 400,
            (Era::Modern, Some(-32601)) if !self.has(Fault::UnknownMethodIs200) => 404,
            (Era::Modern, Some(-32022)) => 400,
            (Era::Modern, Some(-32602)) if !self.has(Fault::MetaErrorIs200) => 400,
            _ => 200,
        }
    }

    /// Checks the session of a legacy request. `initialize` begins one.
    fn legacy(&self, message: &Value) -> Result<(Option<String>, Session), Response> {
        let mut open = self.sessions.open.lock().unwrap();
        if message["method"] == "initialize" {
            let number = self.sessions.next.fetch_add(1, Ordering::SeqCst);
            let space = if self.has(Fault::SessionIdHasSpace) { " " } else { "-" };
            let key = match self.has(Fault::SessionIsShared) {
                true => "session-of-all".to_owned(),
                false => format!("session{space}{number}"),
            };
            open.insert(key.clone(), 0);
            return Ok((Some(key), Session::default()));
        }
        let version = self.request.header("mcp-protocol-version");
        let is_known = version.is_none_or(|version| version.starts_with("202"));
        if !is_known && !self.has(Fault::VersionHeaderIsIgnored) {
            return Err(Response::empty(400));
        }
        match self.request.header("mcp-session-id") {
            None if self.has(Fault::MissingSessionIs403) => Err(Response::empty(403)),
            None => Err(Response::empty(400)),
            Some(key) => match open.get(key) {
                Some(level) => Ok((Some(key.to_owned()), Session { level: *level, is_open: true })),
                None if self.has(Fault::UnknownSessionIs400) => Err(Response::empty(400)),
                None => Err(Response::empty(404)),
            },
        }
    }

    /// Compares the headers of a modern request with its body.
    fn modern(&self, message: &Value) -> Result<(), Response> {
        let params = &message["params"];
        let refused = || Response::refused(400, &message["id"], -32020);
        let meta = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let version = self.request.header("mcp-protocol-version").ok_or_else(refused)?;
        if meta.is_string() && meta != version {
            return Err(refused());
        }
        if self.has(Fault::HeadersAreNotCompared) || message["method"] == "initialize" {
            return Ok(());
        }
        let method = self.request.header("mcp-method").ok_or_else(refused)?;
        if message["method"] != method || (version == MODERN && message["method"].is_null()) {
            return Err(refused());
        }
        let name = match method {
            "tools/call" | "prompts/get" => &params["name"],
            "resources/read" => &params["uri"],
            _ => return Ok(()),
        };
        let header = self.request.header("mcp-name").ok_or_else(refused)?;
        if self.decoded(header) != name.as_str().unwrap_or_default()
            && !self.has(Fault::NameIsNotCompared)
        {
            return Err(refused());
        }
        Ok(())
    }

    /// Decodes the names of this server.
    fn decoded<'h>(&self, header: &'h str) -> &'h str {
        match header {
            _ if self.has(Fault::Base64IsNotDecoded) => header,
            "=?base64?YWRk?=" => "add",
            "=?base64?c2xvdw==?=" => "slow",
            _ => header,
        }
    }

    /// Answers with an event stream.
    fn stream(&self, message: &Value, session: &mut Session) -> std::io::Result<()> {
        let buffering = match self.has(Fault::BufferingIsAllowed) {
            true => "",
            false => "x-accel-buffering: no\r\n",
        };
        let head = format!(
            "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n{buffering}transfer-encoding: chunked\r\n\r\n"
        );
        (&*self.socket).write_all(head.as_bytes())?;
        let is_broken = self.has(Fault::EventsAreBroken);
        let mut events = Events { socket: self.socket, is_broken, is_gone: false };
        events.chunk(": hello\n\n");
        if let Some(answer) = self.reference.answer(message, session, &mut events) {
            events.send(answer);
        }
        if self.has(Fault::ProgressFollowsResponse) {
            events.send(self.reference.progress(&message["params"]["_meta"]["progressToken"], 9));
        }
        (&*self.socket).write_all(b"0\r\n\r\n")
    }
}

/// The surroundings of a request that sends nothing.
struct Nobody;

impl Surroundings for Nobody {
    fn send(&mut self, _: Value) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// An open event stream. It is cancelled when the client closes it.
struct Events<'a> {
    socket: &'a TcpStream,
    is_broken: bool,
    is_gone: bool,
}

impl Events<'_> {
    fn chunk(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.is_gone |= self.socket.write_all(chunk.as_bytes()).is_err();
    }
}

impl Surroundings for Events<'_> {
    fn send(&mut self, message: Value) {
        let line_end = if self.is_broken { "\n\ndata: " } else { "\ndata: " };
        // JSON may span lines of one event.
        let text = format!("{message:#}").replace('\n', line_end);
        self.chunk(&format!("event: message\ndata: {text}\n\n"));
    }

    fn is_cancelled(&self) -> bool {
        let mut room = [0];
        let _ = self.socket.set_nonblocking(true);
        let is_closed = matches!(self.socket.peek(&mut room), Ok(0));
        let _ = self.socket.set_nonblocking(false);
        is_closed || self.is_gone
    }
}
