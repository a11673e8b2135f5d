//! One connection of the client: what is read from it, and what is done about that.

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

/// How long the end of a line is waited for, where a whole message may have come without it.
const LINE_END: Duration = Duration::from_millis(300);
/// Between two bytes that are sent apart.
const APART: Duration = Duration::from_millis(1);
/// What a message gets that holds no call, notification or Response.
const UNREADABLE: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#;
/// How long one write may take: a client that does not read is not waited for.
const WRITE: Duration = Duration::from_secs(30);
/// Messages that are kept for later; a client that floods is then not read for a while.
const MAX_WAITING: usize = 1024;

/// A connection, both ways.
pub(super) struct ClientConnection {
    state: Arc<ScenarioState>,
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: ConnectionOutput,
    reader: ClientReader,
    buffer: Vec<u8>,
    /// Messages with calls that were read and not yet looked at.
    waiting: VecDeque<ReceivedCalls>,
    /// Whether a close frame was sent.
    /// What is said when no call waits.
    owed: Vec<String>,
    is_closing: bool,
}

enum ConnectionOutput {
    Tcp(tokio::net::tcp::OwnedWriteHalf),
    Other(Box<dyn AsyncWrite + Send + Unpin>),
}

/// Nothing more is read.
enum ReadEnd {
    /// The client sends no more; it may still read.
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
        let (buffer, waiting, owed) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { state, input, output, reader, buffer, waiting, owed, is_closing: false }
    }

    /// Serves until either side leaves.
    pub(super) async fn serve(mut self) {
        if !matches!(self.state.script, ServerScript::Leaves) {
            let Err(_) = self.answer().await;
        }
    }

    async fn answer(&mut self) -> Result<std::convert::Infallible, ReadEnd> {
        loop {
            let received = self.gather().await?;
            self.state.record().under_way(&received);
            for act in self.state.script.acts(&received, self.state.wire) {
                self.act(act).await?;
            }
            if self.reader.is_last() {
                return Err(ReadEnd::Whole);
            }
        }
    }

    /// The next message with calls, and those that join it while it is held.
    async fn gather(&mut self) -> Result<Vec<ReceivedCalls>, ReadEnd> {
        let first = self.received().await?;
        let Some(time) =
            self.state.script.hold(self.state.wire).filter(|_| self.state.is_patient())
        else {
            return Ok(vec![first]);
        };
        match timeout(time, self.received()).await {
            Ok(Ok(second)) => Ok(vec![first, second]),
            // Who sends no more may still read.
            Ok(Err(_)) => Ok(vec![first]),
            Err(_) => {
                self.state.held_in_vain(time);
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

    /// Reads one thing that the client did, and writes it down; gives whether it is a reaction, and
    /// not something that the client wants. It may be given up at any time.
    async fn take_next(&mut self) -> Result<bool, ReadEnd> {
        let event = self.event().await?;
        let is_reaction = matches!(event, ClientEvent::Pong(_));
        match event {
            ClientEvent::Message(message) => return self.message(&message).await,
            ClientEvent::Upgrade(key) => {
                self.state.record().event(b"(the handshake of a WebSocket)");
                let opening = self.state.script.opening(&key);
                let status = opening.split(|byte| *byte == b'\r').next().unwrap_or_default();
                self.state.record().sent(status);
                self.write(&opening).await?;
                if !opening.starts_with(b"HTTP/1.1 101") {
                    return Err(ReadEnd::Whole);
                }
            }
            ClientEvent::Hesitation => self.write(&http::response("100 Continue", &[], "")).await?,
            ClientEvent::Stray => {
                self.state.record().event(b"(an HTTP request that is no POST)");
                let headers = ["allow: POST", "content-length: 0"];
                self.send(&http::response("405 Method Not Allowed", &headers, "")).await?;
            }
            ClientEvent::Ping(payload) => {
                self.write(&websocket::frame(websocket::LAST | websocket::PONG, &payload)).await?
            }
            ClientEvent::Pong(payload) => self.state.record().pong(payload),
            ClientEvent::Close(payload) => {
                self.state.record().goodbye();
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
            None if !is_readable => self.tell(UNREADABLE).await?,
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
            self.state.record().is_old |= self.reader.is_old();
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

    /// Reads more. Gives a message where only the end of its line is missing, for good.
    async fn read(&mut self) -> Result<Option<ClientEvent>, ReadEnd> {
        let is_line = self.state.wire == ClientWire::Line && !self.buffer.trim_ascii().is_empty();
        let limit = if is_line { LINE_END } else { Duration::MAX };
        match timeout(limit, self.input.read_buf(&mut self.buffer)).await {
            Ok(Ok(1..)) => Ok(None),
            Err(_) if !is_json(&self.buffer) => Ok(None),
            Ok(Ok(0)) | Err(_) if is_line => {
                let message = std::mem::take(&mut self.buffer);
                let reason = "a message does not end with a newline";
                self.state.record().fault("line-ended", reason, Some(&message));
                Ok(Some(ClientEvent::Message(message)))
            }
            _ => Err(ReadEnd::Half),
        }
    }

    async fn act(&mut self, act: ServerAction) -> Result<(), ReadEnd> {
        let wire = self.state.wire;
        match act {
            ServerAction::Tell(message) => self.tell(&message).await,
            ServerAction::Dribble(message) => {
                self.state.record().sent(message.as_bytes());
                self.dribble(&wire.framed(&message)).await
            }
            ServerAction::Half(message) => {
                let framed = wire.framed(&message);
                self.send(&framed[..framed.len() - message.len() / 2]).await?;
                self.leave()
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
            ServerAction::Close(code) => {
                self.is_closing = true;
                self.state.record().sent(format!("(a close frame with {code})").as_bytes());
                self.write(&websocket::frame(
                    websocket::LAST | websocket::CLOSE,
                    &code.to_be_bytes(),
                ))
                .await
            }
            ServerAction::LeaveLast if !self.waiting.is_empty() => Ok(()),
            ServerAction::Leave | ServerAction::LeaveLast => self.leave(),
            ServerAction::Owe(message) => {
                self.owed.push(message);
                self.settle().await
            }
            ServerAction::Reset => self.reset(),
        }
    }

    /// Says what is owed, unless a call waits.
    async fn settle(&mut self) -> Result<(), ReadEnd> {
        if !self.waiting.is_empty() {
            return Ok(());
        }
        for message in std::mem::take(&mut self.owed) {
            self.tell(&message).await?;
        }
        Ok(())
    }

    /// Reads what comes until then, or until there is a reaction.
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

    async fn tell(&mut self, message: &str) -> Result<(), ReadEnd> {
        self.state.record().sent(message.as_bytes());
        self.write(&self.state.wire.framed(message)).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.state.record().sent(&self.state.wire.shown(bytes));
        self.write(bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        let written = match &mut self.output {
            ConnectionOutput::Tcp(output) => timeout(WRITE, put(output, bytes)).await,
            ConnectionOutput::Other(output) => timeout(WRITE, put(output, bytes)).await,
        };
        written.ok().and_then(Result::ok).ok_or(ReadEnd::Whole)
    }

    async fn dribble(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        for byte in bytes {
            self.write(std::slice::from_ref(byte)).await?;
            sleep(APART).await;
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ReadEnd> {
        self.state.record().sent(b"(the server leaves)");
        Err(ReadEnd::Whole)
    }

    fn reset(&mut self) -> Result<(), ReadEnd> {
        let output = std::mem::replace(&mut self.output, ConnectionOutput::Other(Box::new(sink())));
        if let ConnectionOutput::Tcp(output) = output {
            let _ = output.as_ref().set_zero_linger();
            // Dropped, it would say goodbye first.
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
