//! One connection to the server that is judged: what is sent on it, and what comes, as the wire has
//! it.
//!
//! It reads while it writes, so that a server that answers early is heard and not waited for. What
//! came is never lost: [`Talk::next`] can be given up and asked again.

mod http;
mod ws;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::process::ExitStatus;
use std::task::Poll;

use crate::raw::codec::{self, Stream};
use crate::raw::link::upgrade;
use crate::raw::socket::Socket;
use crate::raw::target::{Speech, Target};

pub(crate) use self::http::Answer;

/// The most bytes that one message may have before the server is called endless.
const MAX_INPUT: usize = 80 << 20;

/// What came.
#[derive(Debug)]
pub(crate) enum Came {
    Message(Vec<u8>),
    /// An HTTP answer, its body included.
    Answer(Answer),
    /// A pong or a close frame.
    Control(u8, Vec<u8>),
    /// Nothing more comes.
    End(End),
}

/// Why nothing more comes.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) what: String,
    /// The connection stands, and what came on it makes no sense.
    pub(crate) is_nonsense: bool,
}

impl End {
    /// The connection ended.
    pub(crate) fn closed(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_nonsense: false }
    }

    fn nonsense(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_nonsense: true }
    }
}

/// A connection.
pub(crate) struct Talk {
    socket: Socket,
    input: Vec<u8>,
    speech: Speaking,
    /// Why nothing more will come.
    end: Option<String>,
    /// The last answer said that the connection ends with it.
    is_last: bool,
}

enum Speaking {
    Http(http::Reader),
    Ws(ws::Reader),
    Stream(Stream),
}

impl Talk {
    /// Connects; `bare` leaves the handshake of a WebSocket to whoever talks.
    pub(crate) async fn connect(target: &Target, bare: bool) -> io::Result<Self> {
        let mut socket = Socket::connect(target).await?;
        let mut input = Vec::new();
        let speech = match &target.speech {
            Speech::Http { .. } => Speaking::Http(http::Reader::new(target)),
            Speech::Ws { .. } if bare => Speaking::Http(http::Reader::new(target)),
            Speech::Ws { path, host } => {
                input = upgrade(&mut socket, path, host, target).await?;
                Speaking::Ws(ws::Reader::default())
            }
            Speech::Stream(framing) => Speaking::Stream(Stream::new(*framing)),
        };
        Ok(Self { socket, input, speech, end: None, is_last: false })
    }

    /// Sends these bytes as one message.
    pub(crate) async fn send(&mut self, message: &[u8]) {
        let framed = match &mut self.speech {
            Speaking::Http(http) => http.post(message),
            Speaking::Ws(_) => ws::message(message),
            Speaking::Stream(stream) => {
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
        self.raw(&ws::frame(first, payload)).await;
    }

    /// Sends bytes as they are; the first line of an HTTP request, with the user's headers behind it.
    pub(crate) async fn line(&mut self, bytes: &[u8]) {
        match &mut self.speech {
            Speaking::Http(http) if http::is_request_line(bytes) => {
                let line = http.begin(bytes);
                self.raw(&line).await;
            }
            _ => self.raw(bytes).await,
        }
    }

    /// Sends bytes as they are. That they cannot be sent is found out by reading.
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
                // What it said before it stopped reading may still be on its way.
                Err(_) => return,
            }
        }
        // What TLS has kept goes out.
        let _ = self.socket.write_all(&[]).await;
        self.socket.hurry();
    }

    /// Takes what is there, while there is room for it.
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

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Came {
        loop {
            match self.find() {
                Ok(Some(came)) => return came,
                Ok(None) => {}
                Err(fault) => return Came::End(End::nonsense(fault)),
            }
            self.answer_pings().await;
            if let Some(end) = &self.end {
                return Came::End(End::closed(end));
            }
            if self.input.len() > MAX_INPUT {
                let what = format!("it sends more than {} MiB in one", MAX_INPUT >> 20);
                return Came::End(End::nonsense(what));
            }
            match self.socket.read(&mut self.input).await {
                Ok(0) => self.end = Some(CLOSED.to_owned()),
                Ok(_) => {}
                Err(error) => self.end = Some(broke(&error)),
            }
        }
    }

    /// Looks for something whole in what came.
    fn find(&mut self) -> Result<Option<Came>, String> {
        let (came, used) = match &mut self.speech {
            Speaking::Http(http) => http.next(&self.input, self.end.is_some())?,
            Speaking::Ws(ws) => ws.next(&self.input)?,
            Speaking::Stream(stream) => in_stream(stream, &self.input)?,
        };
        self.input.drain(..used);
        if let Some(Came::Answer(answer)) = &came {
            self.is_last = answer.closes();
            if answer.status == 101 {
                self.speech = Speaking::Ws(ws::Reader::default());
            }
        }
        Ok(came)
    }

    /// Whether answers are HTTP's: also of a WebSocket's, as long as its handshake is not done.
    pub(crate) fn speaks_http(&self) -> bool {
        matches!(self.speech, Speaking::Http(_))
    }

    /// Whether nothing more can be asked on it.
    pub(crate) fn is_over(&self) -> bool {
        self.is_last || self.end.is_some()
    }

    async fn answer_pings(&mut self) {
        if let Speaking::Ws(ws) = &mut self.speech
            && !ws.pongs.is_empty()
        {
            let pongs = std::mem::take(&mut ws.pongs);
            self.raw(&pongs).await;
        }
    }

    /// Says goodbye where that is the custom, and closes. A child is waited for.
    pub(crate) async fn leave(self) {
        let goodbye = match self.speech {
            Speaking::Ws(_) => ws::frame(0x88, &1000_u16.to_be_bytes()),
            _ => Vec::new(),
        };
        self.socket.leave(&goodbye).await;
    }

    /// How the child process ended that it was a connection to, if it did.
    pub(crate) async fn exit_status(&mut self) -> Option<ExitStatus> {
        let Socket::Child { child, .. } = &mut self.socket else { return None };
        // The pipe may close a moment before the process is gone.
        tokio::time::timeout(MOMENT, child.wait()).await.ok()?.ok()
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

/// The next message of a raw stream, and the bytes it takes.
fn in_stream(stream: &mut Stream, input: &[u8]) -> Result<(Option<Came>, usize), String> {
    let mut passed = 0;
    loop {
        match stream.next(&input[passed..]) {
            Ok(codec::Step::Starved | codec::Step::Refusal(..)) => return Ok((None, passed)),
            Ok(codec::Step::Pass(bytes)) => passed += bytes,
            Ok(codec::Step::Reply(reply, used)) => {
                return Ok((Some(Came::Message(reply.to_vec())), passed + used));
            }
            Ok(codec::Step::Goodbye(why)) => return Err(why),
            Err(broken) => return Err(broken.0),
        }
    }
}
