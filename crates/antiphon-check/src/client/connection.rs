//! One connection of the client: reads its messages, and runs the script of the scenario.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, sink};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::codec::{ClientEvent, ClientReader, ClientWire, http, websocket};
use super::received::{ReceivedCalls, ReceivedMessage};
use super::scenario::{ServerAction, ServerScript};
use super::scenario_state::ScenarioState;

/// The wait for the end of a line, if a complete message arrived without it.
const LINE_END: Duration = Duration::from_millis(300);
/// The pause between two bytes that are sent one by one.
const APART: Duration = Duration::from_millis(1);
/// The response to a message that is not a call, a notification or a Response.
const UNREADABLE: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#;
/// The time limit of one write: the server does not wait for a client that stops reading.
const WRITE: Duration = Duration::from_secs(30);
/// The limit of queued messages. Beyond it, the server stops reading for a while.
const MAX_WAITING: usize = 1024;

/// One connection of the client.
pub(super) struct ClientConnection {
    state: Arc<ScenarioState>,
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: ConnectionOutput,
    reader: ClientReader,
    buffer: Vec<u8>,
    /// Received messages with calls, not handled yet.
    waiting: VecDeque<ReceivedCalls>,
    /// Messages that are sent once no call waits.
    deferred: Vec<String>,
    /// A close frame was sent.
    is_closing: bool,
}

enum ConnectionOutput {
    Tcp(tokio::net::tcp::OwnedWriteHalf),
    Other(Box<dyn AsyncWrite + Send + Unpin>),
}

/// The end of reading.
enum ReadEnd {
    /// The client closed its sending side; it may still read.
    Half,
    Whole,
}

impl ClientConnection {
    pub(super) fn tcp(state: Arc<ScenarioState>, socket: TcpStream) -> Self {
        let _ = socket.set_nodelay(true);
        let (input, output) = socket.into_split();
        Self::new(state, Box::new(input), ConnectionOutput::Tcp(output))
    }

    pub(super) fn unix(state: Arc<ScenarioState>, socket: UnixStream) -> Self {
        let (input, output) = socket.into_split();
        Self::new(state, Box::new(input), ConnectionOutput::Other(Box::new(output)))
    }

    pub(super) fn pipes(state: Arc<ScenarioState>, stdin: ChildStdin, stdout: ChildStdout) -> Self {
        Self::new(state, Box::new(stdout), ConnectionOutput::Other(Box::new(stdin)))
    }

    fn new(
        state: Arc<ScenarioState>,
        input: Box<dyn AsyncRead + Send + Unpin>,
        output: ConnectionOutput,
    ) -> Self {
        let reader = state.wire.reader();
        let (buffer, waiting, deferred) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { state, input, output, reader, buffer, waiting, deferred, is_closing: false }
    }

    /// Serves until either side closes the connection.
    pub(super) async fn serve(mut self) {
        if !matches!(self.state.script, ServerScript::CloseAtOnce) {
            let Err(_) = self.answer().await;
        }
    }

    async fn answer(&mut self) -> Result<std::convert::Infallible, ReadEnd> {
        loop {
            let received = self.hold().await?;
            self.state.record().in_flight(&received);
            for act in self.state.script.acts(&received, self.state.wire) {
                self.act(act).await?;
            }
            if self.reader.is_last() {
                return Err(ReadEnd::Whole);
            }
        }
    }

    /// Returns the next message with calls, and one that joins it while it is held.
    async fn hold(&mut self) -> Result<Vec<ReceivedCalls>, ReadEnd> {
        let first = self.received().await?;
        let Some(time) = self.state.script.hold(self.state.wire).filter(|_| self.state.may_hold())
        else {
            return Ok(vec![first]);
        };
        match timeout(time, self.received()).await {
            Ok(Ok(second)) => Ok(vec![first, second]),
            // The client may still read.
            Ok(Err(_)) => Ok(vec![first]),
            Err(_) => {
                self.state.record_hold(time);
                Ok(vec![first])
            }
        }
    }

    async fn received(&mut self) -> Result<ReceivedCalls, ReadEnd> {
        loop {
            if let Some(received) = self.waiting.pop_front() {
                return Ok(received);
            }
            self.take_next().await?;
        }
    }

    /// Reads and records one event. Returns true for a reaction to the server's messages, and false for a
    /// request of the client. Cancel-safe.
    async fn take_next(&mut self) -> Result<bool, ReadEnd> {
        let event = self.event().await?;
        let is_reaction = matches!(event, ClientEvent::Pong(_));
        match event {
            ClientEvent::Message(message) => return self.message(&message).await,
            ClientEvent::Upgrade(key) => {
                self.state.record().received(b"(a WebSocket handshake)");
                let opening = self.state.script.opening(&key);
                let status = opening.split(|byte| *byte == b'\r').next().unwrap_or_default();
                self.state.record().sent(status);
                self.write(&opening).await?;
                if !opening.starts_with(b"HTTP/1.1 101") {
                    return Err(ReadEnd::Whole);
                }
            }
            ClientEvent::ExpectContinue => {
                self.write(&http::response("100 Continue", &[], "")).await?;
            }
            ClientEvent::Stray => {
                self.state.record().received(b"(an HTTP request other than POST)");
                let headers = ["allow: POST", "content-length: 0"];
                self.send(&http::response("405 Method Not Allowed", &headers, "")).await?;
            }
            ClientEvent::Ping(payload) => {
                self.write(&websocket::frame(websocket::LAST | websocket::PONG, &payload)).await?;
            }
            ClientEvent::Pong(payload) => self.state.record().pong(payload),
            ClientEvent::Close(payload) => {
                self.state.record().close_frame();
                if !self.is_closing {
                    let _ = self
                        .write(&websocket::frame(websocket::LAST | websocket::CLOSE, &payload))
                        .await;
                }
                return Err(ReadEnd::Whole);
            }
        }
        Ok(is_reaction)
    }

    async fn message(&mut self, message: &[u8]) -> Result<bool, ReadEnd> {
        let parsed = ReceivedMessage::read(message, self.state.result.as_deref());
        let is_first = {
            let mut record = self.state.record();
            let calls_before = record.calls;
            record.message(message, &parsed);
            calls_before == 0
        };
        let is_reaction = !parsed.replies.is_empty();
        let is_readable = parsed.is_readable();
        match parsed.received {
            Some(received) => self.waiting.push_back(ReceivedCalls { is_first, ..received }),
            None if !is_readable => self.send_message(UNREADABLE).await?,
            None if self.state.wire == ClientWire::Http => {
                self.send(&http::response("204 No Content", &[], "")).await?;
            }
            None => {}
        }
        Ok(is_reaction)
    }

    async fn event(&mut self) -> Result<ClientEvent, ReadEnd> {
        loop {
            let mut faults = Vec::new();
            let next = self.reader.next(&mut self.buffer, &mut faults);
            let is_broken = next.is_err();
            let next = next.unwrap_or_else(|fault| {
                faults.push(fault);
                None
            });
            for (check, reason) in faults {
                self.state.record().fault(check, reason, None);
            }
            self.state.record().is_http10 |= self.reader.is_http10();
            match next {
                Some(event) => return Ok(event),
                None if is_broken => return Err(ReadEnd::Whole),
                None => {}
            }
            if let Some(message) = self.read().await? {
                return Ok(message);
            }
        }
    }

    /// Reads more bytes. Returns a message if only the end of its line is missing and does not arrive.
    async fn read(&mut self) -> Result<Option<ClientEvent>, ReadEnd> {
        let is_line = self.state.wire == ClientWire::Line && !self.buffer.trim_ascii().is_empty();
        let limit = if is_line { LINE_END } else { Duration::MAX };
        match timeout(limit, self.input.read_buf(&mut self.buffer)).await {
            Ok(Ok(1..)) => Ok(None),
            Err(_) if !is_json(&self.buffer) => Ok(None),
            Ok(Ok(0)) | Err(_) if is_line => {
                let message = std::mem::take(&mut self.buffer);
                let reason = "a message has no newline at its end";
                self.state.record().fault("line-ended", reason, Some(&message));
                Ok(Some(ClientEvent::Message(message)))
            }
            _ => Err(ReadEnd::Half),
        }
    }

    async fn act(&mut self, act: ServerAction) -> Result<(), ReadEnd> {
        let wire = self.state.wire;
        match act {
            ServerAction::Message(message) => self.send_message(&message).await,
            ServerAction::ByteByByte(message) => {
                self.state.record().sent(message.as_bytes());
                self.send_bytewise(&wire.framed(&message)).await
            }
            ServerAction::Truncated(message) => {
                let framed = wire.framed(&message);
                self.send(&framed[..framed.len() - message.len() / 2]).await?;
                self.close()
            }
            ServerAction::Send(bytes) => self.send(&bytes).await,
            ServerAction::Wait(time) => {
                let over = Arc::clone(&self.state).is_over();
                tokio::select! {
                    over = self.read_until(Instant::now() + time, false) => over,
                    () = over => Err(ReadEnd::Whole),
                }
            }
            ServerAction::Listen(time) => self.read_until(Instant::now() + time, true).await,
            ServerAction::CloseFrame(code) => {
                self.is_closing = true;
                self.state.record().sent(format!("(a close frame with {code})").as_bytes());
                self.write(&websocket::frame(
                    websocket::LAST | websocket::CLOSE,
                    &code.to_be_bytes(),
                ))
                .await
            }
            ServerAction::CloseWhenIdle if !self.waiting.is_empty() => Ok(()),
            ServerAction::Close | ServerAction::CloseWhenIdle => self.close(),
            ServerAction::Deferred(message) => {
                self.deferred.push(message);
                self.send_deferred().await
            }
            ServerAction::Reset => self.reset(),
        }
    }

    /// Sends the deferred messages, unless a call waits.
    async fn send_deferred(&mut self) -> Result<(), ReadEnd> {
        if !self.waiting.is_empty() {
            return Ok(());
        }
        for message in std::mem::take(&mut self.deferred) {
            self.send_message(&message).await?;
        }
        Ok(())
    }

    /// Reads events until this time, or until a reaction.
    async fn read_until(&mut self, end: Instant, or_reaction: bool) -> Result<(), ReadEnd> {
        loop {
            if self.waiting.len() > MAX_WAITING {
                sleep_until(end).await;
                return Ok(());
            }
            match timeout_at(end, self.take_next()).await {
                Ok(Ok(is_reaction)) if is_reaction && or_reaction => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(ReadEnd::Half)) => {
                    sleep_until(end).await;
                    return Ok(());
                }
                Ok(Err(ReadEnd::Whole)) => return Err(ReadEnd::Whole),
                Err(_) => return Ok(()),
            }
        }
    }

    async fn send_message(&mut self, message: &str) -> Result<(), ReadEnd> {
        self.state.record().sent(message.as_bytes());
        self.write(&self.state.wire.framed(message)).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.state.record().sent(&self.state.wire.readable(bytes));
        self.write(bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        let written = match &mut self.output {
            ConnectionOutput::Tcp(output) => timeout(WRITE, put(output, bytes)).await,
            ConnectionOutput::Other(output) => timeout(WRITE, put(output, bytes)).await,
        };
        written.ok().and_then(Result::ok).ok_or(ReadEnd::Whole)
    }

    async fn send_bytewise(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        for byte in bytes {
            self.write(std::slice::from_ref(byte)).await?;
            sleep(APART).await;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ReadEnd> {
        self.state.record().sent(b"(the server closes the connection)");
        Err(ReadEnd::Whole)
    }

    fn reset(&mut self) -> Result<(), ReadEnd> {
        let output = std::mem::replace(&mut self.output, ConnectionOutput::Other(Box::new(sink())));
        if let ConnectionOutput::Tcp(output) = output {
            let _ = output.as_ref().set_zero_linger();
            // Dropping the half would shut it down in an orderly way first.
            output.forget();
        }
        self.state.record().sent(b"(the server resets the connection)");
        Err(ReadEnd::Whole)
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

async fn put(output: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes).await?;
    output.flush().await
}
