//! One connection to the server under test: sends messages and raw bytes, and returns what arrives.
//!
//! It reads while it writes. Otherwise a server that replies before it has read everything would
//! deadlock with it. [`ServerConnection::next`] is cancel-safe: received bytes stay in the buffer.

mod event_stream;
mod http;
mod websocket;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::process::ExitStatus;
use std::task::Poll;

use super::mcp::McpConnection;
use crate::raw::RawSocket;
use crate::raw::codec::{self, StreamCodec};
use crate::raw::upgrade;
use crate::raw::{AddressProtocol, ResolvedTarget};

pub(crate) use self::http::HttpResponse;

/// The size limit of one message.
const MAX_INPUT: usize = 80 << 20;

/// An event of the connection.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Message(Vec<u8>),
    /// An HTTP response with its body.
    Response(HttpResponse),
    /// The end of an event stream, whose events are messages.
    StreamEnd,
    /// A pong or a close frame.
    Control(u8, Vec<u8>),
    /// The connection ended, or its bytes make no sense.
    End(ConnectionEnd),
}

/// The reason why no more events arrive.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionEnd {
    pub(crate) what: String,
    /// The connection is open, but the peer violates the protocol of the wire.
    pub(crate) is_violation: bool,
}

impl ConnectionEnd {
    /// An end by a closed connection.
    pub(crate) fn closed(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_violation: false }
    }

    fn violation(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_violation: true }
    }
}

/// One connection to the server under test.
pub(crate) struct ServerConnection {
    socket: RawSocket,
    input: Vec<u8>,
    protocol: ConnectionProtocol,
    /// The reason why no more bytes arrive.
    end: Option<String>,
    /// The last response announced the close of the connection.
    is_last: bool,
    /// Headers of the next POSTs, by the case. `None` leaves a header out.
    pub(crate) post_headers: Vec<(String, Option<String>)>,
    /// The state of an MCP client.
    pub(crate) mcp: Option<Box<McpConnection>>,
}

enum ConnectionProtocol {
    Http(http::HttpResponseReader),
    Ws(websocket::WsFrameReader),
    Stream(StreamCodec),
}

impl ServerConnection {
    /// Connects. With `bare`, the caller performs the WebSocket handshake.
    pub(crate) async fn connect(target: &ResolvedTarget, bare: bool) -> io::Result<Self> {
        let mut socket = RawSocket::connect(target).await?;
        let mut input = Vec::new();
        let protocol = match &target.address.protocol {
            AddressProtocol::Http { .. } => {
                ConnectionProtocol::Http(http::HttpResponseReader::new(target))
            }
            AddressProtocol::Ws { .. } if bare => {
                ConnectionProtocol::Http(http::HttpResponseReader::new(target))
            }
            AddressProtocol::Ws { path, host } => {
                input = upgrade(&mut socket, path, host, target).await?;
                ConnectionProtocol::Ws(websocket::WsFrameReader::default())
            }
            AddressProtocol::Stream(framing) => {
                ConnectionProtocol::Stream(StreamCodec::new(*framing))
            }
        };
        Ok(Self {
            socket,
            input,
            protocol,
            end: None,
            is_last: false,
            post_headers: Vec::new(),
            mcp: None,
        })
    }

    /// Makes it a connection of an MCP client: it adds the headers, and watches the messages.
    pub(crate) fn set_mcp(&mut self, mcp: Box<McpConnection>) {
        if let ConnectionProtocol::Http(http) = &mut self.protocol {
            http.read_events();
        }
        self.mcp = Some(mcp);
    }

    /// Continues the session of another connection, which has ended.
    pub(crate) fn continue_session_of(&mut self, other: &mut Self) {
        self.post_headers = std::mem::take(&mut other.post_headers);
        if let Some(mcp) = other.mcp.take() {
            self.set_mcp(mcp);
        }
    }

    /// Sends these bytes as one message.
    pub(crate) async fn send(&mut self, message: &[u8]) {
        let mut headers = Vec::new();
        if let Some(mcp) = &mut self.mcp {
            mcp.sent(message);
            headers = mcp.headers.of(message);
        }
        let framed = match &mut self.protocol {
            ConnectionProtocol::Http(http) => {
                headers.extend(self.post_headers.iter().cloned());
                http.post(message, &headers)
            }
            ConnectionProtocol::Ws(_) => websocket::message(message),
            ConnectionProtocol::Stream(stream) => {
                let mut out = Vec::with_capacity(message.len() + 32);
                stream.begin(message.len(), &mut out);
                out.extend_from_slice(message);
                stream.end(&mut out);
                out
            }
        };
        self.raw(&framed).await;
    }

    /// Sends a WebSocket frame.
    pub(crate) async fn frame(&mut self, first: u8, payload: &[u8]) {
        self.raw(&websocket::frame(first, payload)).await;
    }

    /// Sends bytes as they are. The user's headers follow the first line of an HTTP request.
    pub(crate) async fn line(&mut self, bytes: &[u8]) {
        match &mut self.protocol {
            ConnectionProtocol::Http(http) if http::is_request_line(bytes) => {
                let mut head = http.begin(bytes);
                if let Some(mcp) = &self.mcp {
                    head.extend(mcp.headers.of_session());
                }
                self.raw(&head).await;
            }
            _ => self.raw(bytes).await,
        }
    }

    /// Sends bytes as they are. A failed write shows up as an event of [`Self::next`].
    pub(crate) async fn raw(&mut self, mut bytes: &[u8]) {
        let mut room = vec![0; 16 << 10];
        while !bytes.is_empty() && self.end.is_none() {
            let written = poll_fn(|cx| {
                self.poll_input(cx, &mut room);
                match self.socket.poll_write(cx, &[IoSlice::new(bytes)]) {
                    Poll::Pending if self.end.is_some() => Poll::Ready(Ok(0)),
                    other => other,
                }
            });
            match written.await {
                Ok(written) => bytes = &bytes[written..],
                // Messages that the server sent before it stopped reading may still arrive.
                Err(_) => return,
            }
        }
        // Flushes TLS.
        let _ = self.socket.write_all(&[]).await;
        self.socket.acknowledge_now();
    }

    /// Reads the bytes that are available, up to the size limit.
    fn poll_input(&mut self, cx: &mut std::task::Context<'_>, room: &mut [u8]) {
        while self.end.is_none() && self.input.len() <= MAX_INPUT {
            match self.socket.poll_read(cx, room) {
                Poll::Ready(Ok(0)) => self.end = Some(CLOSED.to_owned()),
                Poll::Ready(Ok(read)) => self.input.extend_from_slice(&room[..read]),
                Poll::Ready(Err(error)) => self.end = Some(broke(&error)),
                Poll::Pending => return,
            }
        }
    }

    /// Returns the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ServerEvent {
        loop {
            match self.find() {
                Ok(Some(event)) => return event,
                Ok(None) => {}
                Err(fault) => return ServerEvent::End(ConnectionEnd::violation(fault)),
            }
            self.answer_pings().await;
            if let Some(end) = &self.end {
                return ServerEvent::End(ConnectionEnd::closed(end));
            }
            if self.input.len() > MAX_INPUT {
                let what = format!("one message is larger than {} MiB", MAX_INPUT >> 20);
                return ServerEvent::End(ConnectionEnd::violation(what));
            }
            match self.socket.read(&mut self.input).await {
                Ok(0) => self.end = Some(CLOSED.to_owned()),
                Ok(_) => {}
                Err(error) => self.end = Some(broke(&error)),
            }
        }
    }

    /// Returns the next complete event of the buffer.
    fn find(&mut self) -> Result<Option<ServerEvent>, String> {
        let (event, used) = match &mut self.protocol {
            ConnectionProtocol::Http(http) => http.next(&self.input, self.end.is_some())?,
            ConnectionProtocol::Ws(ws) => ws.next(&self.input)?,
            ConnectionProtocol::Stream(stream) => in_stream(stream, &self.input)?,
        };
        self.input.drain(..used);
        if let (Some(mcp), Some(event)) = (&mut self.mcp, &event) {
            mcp.received(event);
        }
        if let Some(ServerEvent::Response(response)) = &event {
            self.is_last = response.closes();
            if response.status == 101 {
                self.protocol = ConnectionProtocol::Ws(websocket::WsFrameReader::default());
            }
        }
        Ok(event)
    }

    /// Reports whether responses are HTTP's. A WebSocket is HTTP until its handshake is complete.
    pub(crate) fn speaks_http(&self) -> bool {
        matches!(self.protocol, ConnectionProtocol::Http(_))
    }

    /// Reports whether the connection takes no more requests.
    pub(crate) fn is_over(&self) -> bool {
        self.is_last || self.end.is_some() || self.is_streaming()
    }

    /// Reports whether an event stream has not ended. No other response can follow before its end.
    pub(crate) fn is_streaming(&self) -> bool {
        matches!(&self.protocol, ConnectionProtocol::Http(http) if http.is_streaming())
    }

    async fn answer_pings(&mut self) {
        if let ConnectionProtocol::Ws(ws) = &mut self.protocol
            && !ws.pongs.is_empty()
        {
            let pongs = std::mem::take(&mut ws.pongs);
            self.raw(&pongs).await;
        }
    }

    /// Closes the connection; a WebSocket with a close frame. Waits for a child process to exit.
    pub(crate) async fn close(self) {
        let close_message = match self.protocol {
            ConnectionProtocol::Ws(_) => websocket::frame(0x88, &1000_u16.to_be_bytes()),
            _ => Vec::new(),
        };
        self.socket.close(&close_message).await;
    }

    /// Returns the exit status of the server, if the connection is its process and it ended.
    pub(crate) async fn exit_status(&mut self) -> Option<ExitStatus> {
        // The pipe may close a moment before the process ends.
        self.socket.exit_status(MOMENT).await
    }
}

const MOMENT: std::time::Duration = std::time::Duration::from_millis(200);

const CLOSED: &str = "the server closed the connection";

fn broke(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the server reset the connection".to_owned(),
        _ => format!("the connection broke: {error}"),
    }
}

/// Returns the next message of a raw stream, and the number of bytes to consume.
fn in_stream(
    stream: &mut StreamCodec,
    input: &[u8],
) -> Result<(Option<ServerEvent>, usize), String> {
    let mut passed = 0;
    loop {
        match stream.next(&input[passed..]) {
            Ok(codec::Decoded::Starved | codec::Decoded::Refusal(..)) => return Ok((None, passed)),
            Ok(codec::Decoded::Pass(bytes)) => passed += bytes,
            Ok(codec::Decoded::Reply(reply, used)) => {
                return Ok((Some(ServerEvent::Message(reply.to_vec())), passed + used));
            }
            Ok(codec::Decoded::Closing(why)) => return Err(why),
            Err(broken) => return Err(broken.0),
        }
    }
}
