//! A client of HTTP/1.1 that sends each request on a connection of its own.

use std::collections::VecDeque;

use antiphon::Limits;
use antiphon_mcp::McpServer;
use antiphon_mcp::http::StreamableHttp;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{modern, within};

/// An endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Http {
    pub(crate) port: u16,
}

impl Http {
    /// Serves over HTTP with these settings.
    pub(crate) async fn serve_with(
        server: &McpServer,
        options: StreamableHttp,
        limits: Limits,
    ) -> Self {
        let bound = server.bind_with("http://127.0.0.1:0/mcp", options).await.unwrap();
        let port = bound.endpoint().port().unwrap();
        tokio::spawn(bound.limits(limits).serve(server.clone()));
        Self { port }
    }

    pub(crate) async fn serve(server: &McpServer) -> Self {
        Self::serve_with(server, StreamableHttp::new(), Limits::default()).await
    }

    pub(crate) fn request(self, method: &'static str) -> HttpRequest {
        let host = ("host", format!("127.0.0.1:{}", self.port));
        HttpRequest { http: self, method, path: "/mcp".to_owned(), headers: vec![host], body: None }
    }

    /// A POST of a text with the headers that every client sends.
    pub(crate) fn post(self, body: impl Into<String>) -> HttpRequest {
        self.request("POST")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
    }

    /// A modern request with its metadata and its headers.
    pub(crate) fn modern(self, id: u64, method: &str, params: Value) -> HttpRequest {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let params = match params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null() {
            true => modern(params),
            false => params,
        };
        let request = self
            .post(super::request(id, method, params).to_string())
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// Calls a modern method, and returns the response.
    pub(crate) async fn modern_call(self, method: &str, params: Value) -> Value {
        self.modern(1, method, params).send().await.response().await
    }
}

/// A request that is not yet sent.
#[derive(Clone)]
pub(crate) struct HttpRequest {
    http: Http,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
}

impl HttpRequest {
    /// Sets a header.
    pub(crate) fn header(self, name: &'static str, value: impl Into<String>) -> Self {
        self.without(name).and_header(name, value)
    }

    /// Adds a header.
    pub(crate) fn and_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into().into_bytes());
        self
    }

    pub(crate) fn method(&self) -> &'static str {
        self.method
    }

    /// The names of the headers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.headers.iter().map(|(name, _)| *name)
    }

    /// Sends the request, and reads the head of the response.
    pub(crate) async fn send(self) -> HttpReply {
        let stream = within(TcpStream::connect(("127.0.0.1", self.http.port))).await.unwrap();
        let mut reply = HttpReply::new(stream);
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(self.body.unwrap_or_default());
        // A server may refuse a body before it has read all of it.
        let _ = within(reply.stream.write_all(&bytes)).await;
        reply.read_head().await;
        reply
    }

    /// Sends the request, and returns the status.
    pub(crate) async fn status(self) -> u16 {
        self.send().await.status
    }
}

/// A response, whose body is read bit by bit.
pub(crate) struct HttpReply {
    stream: TcpStream,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    /// What was read from the connection and is not decoded.
    buffer: Vec<u8>,
    /// The decoded body that was not taken.
    body: Vec<u8>,
    is_ended: bool,
    events: VecDeque<Event>,
}

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

impl HttpReply {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            status: 0,
            headers: Vec::new(),
            buffer: Vec::new(),
            body: Vec::new(),
            is_ended: false,
            events: VecDeque::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    async fn read_head(&mut self) {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            assert!(self.read_more().await, "no response");
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        self.status = status.parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        self.headers =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    }

    async fn read_more(&mut self) -> bool {
        let read = within(self.stream.read_buf(&mut self.buffer)).await;
        read.is_ok_and(|read| read > 0)
    }

    /// Decodes more of the body. Returns false at its end.
    async fn read_body(&mut self) -> bool {
        if self.is_ended {
            return false;
        }
        match self.header("content-length").map(|length| length.parse::<usize>().unwrap()) {
            Some(length) => {
                while self.buffer.len() < length && self.read_more().await {}
                self.is_ended = true;
                self.body.append(&mut self.buffer);
                !self.body.is_empty()
            }
            None if self.header("transfer-encoding").is_some() => self.read_chunk().await,
            None => false,
        }
    }

    async fn read_chunk(&mut self) -> bool {
        let line = loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                break end;
            }
            if !self.read_more().await {
                self.is_ended = true;
                return false;
            }
        };
        let length = std::str::from_utf8(&self.buffer[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        while self.buffer.len() < line + 2 + length + 2 && self.read_more().await {}
        let chunk: Vec<u8> = self.buffer.drain(..line + 2 + length + 2).collect();
        self.is_ended = length == 0;
        self.body.extend_from_slice(&chunk[line + 2..line + 2 + length]);
        !self.is_ended
    }

    /// The rest of the body.
    pub(crate) async fn text(&mut self) -> String {
        while self.read_body().await {}
        String::from_utf8(std::mem::take(&mut self.body)).unwrap()
    }

    /// The next event; `None` at the end of the stream. The comments that keep a stream open do not count.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        within(self.read_event()).await
    }

    async fn read_event(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "not a stream, but status {}", self.status);
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if !self.read_body().await {
                return None;
            }
            while let Some(end) = find(&self.body, b"\n\n") {
                let text: Vec<u8> = self.body.drain(..end + 2).collect();
                self.events.extend(parse_event(std::str::from_utf8(&text).unwrap()));
            }
        }
    }

    /// The message in the next event.
    pub(crate) async fn next(&mut self) -> Value {
        self.event().await.expect("the stream has ended").json()
    }

    /// The response: the body, or the last event of a stream.
    pub(crate) async fn response(mut self) -> Value {
        if self.is_stream() {
            let mut last = None;
            while let Some(event) = self.event().await {
                last = Some(event);
            }
            return last.expect("a stream without events").json();
        }
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}: {text}", self.status))
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn parse_event(text: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut has_data = false;
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.event = Some(value.to_owned()),
            "retry" => event.retry = value.parse().ok(),
            "data" => {
                event.data.push_str(value);
                has_data = true;
            }
            _ => {}
        }
    }
    has_data.then_some(event)
}
