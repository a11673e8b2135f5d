//! WebSocket: one JSON text a message, text or binary.
//!
//! `antiphon_core::framing::websocket` says what the bytes mean; this answers pings and closes, says
//! goodbye, and tells the other side what it did wrong. Frames that go out gather until they are
//! flushed.

pub(super) mod handshake;
mod keep_alive;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::Limits;
use antiphon_core::framing::websocket::{
    Event, Opcode, Role, WebSocketDeframer, WebSocketError, encode_close,
};
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use self::keep_alive::{KeepAlive, KeepAliveAction};
use super::{TransportError, tcp};
use crate::connection::Connection;
use crate::endpoint::Authority;
use crate::io::Meter;
use crate::io::linger::Linger;
use crate::io::read_buffer::ReadBuffer;
#[cfg(feature = "tls")]
use crate::io::tls::{self, TlsClient, TlsStream};
use crate::io::write_buffer::{LARGE, WriteBuffer};
use crate::peer::Wire;

/// Pings answered before the other side has taken one pong: past it, it only floods.
const MAX_UNSENT_PONGS: usize = 1_024;

/// Messages over a WebSocket.
pub(crate) struct WsTransport<S> {
    io: S,
    deframer: WebSocketDeframer,
    /// A client masks what it sends.
    masks: Option<Masks>,
    incoming: ReadBuffer,
    outgoing: WriteBuffer,
    meter: Arc<Meter>,
    unsent_pongs: usize,
    state: WsState,
    /// Why it ends, where it ends badly.
    end: Option<Box<WsEnd>>,
    /// Asks whether the other side is there.
    keep_alive: Option<Box<KeepAlive>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WsState {
    Open,
    /// Our goodbye is said, theirs is to come.
    Leaving,
    /// Nothing more is heard; what is to be said goes out.
    Left,
}

struct WsEnd {
    reason: String,
    /// Where it is we who end it.
    linger: Option<Linger>,
}

/// Takes over a stream whose handshake is done, and what was read of it too early.
pub(crate) fn serve<S>(
    stream: S,
    unread: &[u8],
    facts: Connection,
    limits: &Limits,
) -> Wire<WsTransport<S>> {
    wire(stream, unread, facts, Role::Server, limits)
}

/// Connects and shakes hands.
pub(crate) async fn connect(
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
    limits: &Limits,
) -> io::Result<Wire<WsTransport<TcpStream>>> {
    let stream = tcp::connect(&authority.with_default_port(80), limits).await?;
    let facts = Connection::new("ws").from(stream.peer_addr().ok());
    open(stream, facts, authority, path, headers, limits).await
}

/// The same by TLS.
#[cfg(feature = "tls")]
pub(crate) async fn connect_tls(
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
    limits: &Limits,
    tls: &TlsClient,
) -> io::Result<Wire<WsTransport<TlsStream>>> {
    let connector = tls::Connector::new(tls, &authority.host, &tls::HTTP1)?;
    let stream = tcp::connect(&authority.with_default_port(443), limits).await?;
    let stream = connector.connect(stream).await?;
    let facts = Connection::new("wss").from(stream.remote());
    open(stream, facts, authority, path, headers, limits).await
}

async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    facts: Connection,
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
    limits: &Limits,
) -> io::Result<Wire<WsTransport<S>>> {
    // Boxed, or whatever connects would be as large as the handshake.
    let asking = Box::pin(handshake::ask(stream, authority, path, headers));
    let (stream, unread) = asking.await?;
    let mut wire = wire(stream, &unread, facts, Role::Client, limits);
    wire.transport.masks = Some(Masks::default());
    Ok(wire)
}

fn wire<S>(
    io: S,
    unread: &[u8],
    facts: Connection,
    role: Role,
    limits: &Limits,
) -> Wire<WsTransport<S>> {
    let meter = Arc::<Meter>::default();
    let transport = WsTransport {
        io,
        deframer: WebSocketDeframer::new(role, limits.longest_frame()),
        masks: None,
        incoming: ReadBuffer::new(unread),
        outgoing: WriteBuffer::default(),
        meter: meter.clone(),
        unsent_pongs: 0,
        state: WsState::Open,
        end: None,
        keep_alive: limits.keep_alive.map(|span| Box::new(KeepAlive::new(span))),
    };
    Wire { meter, ..Wire::new(transport, facts) }
}

/// Masks that nobody can foresee (RFC 6455, section 10.3): a keyed hash of a counter.
#[derive(Default)]
struct Masks {
    key: RandomState,
    count: u64,
}

impl Masks {
    fn next(&mut self) -> [u8; 4] {
        self.count += 1;
        let [a, b, c, d, ..] = self.key.hash_one(self.count).to_ne_bytes();
        [a, b, c, d]
    }
}

/// What a close says that is more than a goodbye.
fn complaint(code: Option<u16>, reason: &str) -> Option<String> {
    let code = code.filter(|code| *code > 1001)?;
    Some(format!("the other side closed the WebSocket with {code}: {reason}"))
}

fn reason(fault: &WebSocketError) -> String {
    match fault {
        WebSocketError::TooLarge { .. } => fault.to_string(),
        other => format!("the other side broke the WebSocket protocol: {other}"),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for WsTransport<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_message(cx));
        if let Some(Err(_)) = next {
            // An error is the last thing that comes of a WebSocket.
            self.state = WsState::Left;
            self.end = None;
            self.outgoing = WriteBuffer::default();
        }
        Poll::Ready(next)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WsTransport<S> {
    fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        // What was not taken before: nobody else may come to flush a pong.
        self.try_flush(cx)?;
        while self.state != WsState::Left {
            match self.deframer.next(&mut self.incoming.buf) {
                Some(Ok(Event::Message(message))) => return Poll::Ready(Some(Ok(message))),
                Some(Ok(Event::Ping(payload))) => self.pong(payload, cx)?,
                Some(Ok(Event::Pong)) => {}
                Some(Ok(Event::Close { code, reason })) => self.hear_goodbye(code, &reason),
                Some(Err(fault)) => self.close_for(&fault),
                None => ready!(self.poll_read(cx))?,
            }
        }
        // The goodbye that says why goes out first.
        ready!(self.poll_drain(cx))?;
        if let Some(linger) = self.end.as_mut().and_then(|end| end.linger.as_mut()) {
            ready!(linger.poll(&mut self.io, cx, &self.meter));
        }
        Poll::Ready(self.end.take().map(|end| Err(TransportError::Broken(end.reason))))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, deframer, incoming, meter, .. } = self;
        let buffered = incoming.buf.len();
        let under_way = deframer.is_under_way(buffered);
        match incoming.poll_read(io, cx, deframer.wanted(buffered), meter) {
            Poll::Ready(Ok(0)) if under_way => {
                Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            Poll::Ready(Ok(0)) => {
                self.state = WsState::Left;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(read) => Poll::Ready(read.map(drop)),
            Poll::Pending => {
                meter.whole(under_way);
                self.ask_whether_alive(cx)?;
                self.try_flush(cx)?;
                self.incoming.rest();
                self.outgoing.rest();
                Poll::Pending
            }
        }
    }

    /// Sends a ping where it is time; fails where the last one was not answered.
    fn ask_whether_alive(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(keep_alive) = &mut self.keep_alive else { return Ok(()) };
        let is_writing = !self.outgoing.is_empty();
        while let Poll::Ready(next) = keep_alive.poll(cx, &self.meter, is_writing) {
            if next == KeepAliveAction::Fail {
                let text = format!("no answer to a ping within {:?}", keep_alive.span());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            let mask = self.masks.as_mut().map(Masks::next);
            Opcode::Ping.encode(&[], mask, self.outgoing.tail());
        }
        Ok(())
    }

    /// Sends what waits, as far as it is taken.
    fn try_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.outgoing.is_empty() && self.unsent_pongs == 0 {
            return Ok(());
        }
        match self.poll_drain(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, outgoing, meter, .. } = self;
        ready!(outgoing.poll_drain(io, cx, meter))?;
        ready!(Pin::new(io).poll_flush(cx))?;
        self.unsent_pongs = 0;
        Poll::Ready(Ok(()))
    }

    /// Goes out with what is flushed next, and when there is nothing more to read.
    fn pong(&mut self, payload: Bytes, cx: &mut Context<'_>) -> Result<(), TransportError> {
        if self.state != WsState::Open {
            return Ok(());
        }
        if self.unsent_pongs == MAX_UNSENT_PONGS {
            self.try_flush(cx)?;
        }
        if self.unsent_pongs == MAX_UNSENT_PONGS {
            let flood = "pings come faster than pongs are taken".to_owned();
            return Err(TransportError::Broken(flood));
        }
        self.unsent_pongs += 1;
        self.queue(Opcode::Pong, payload);
        Ok(())
    }

    /// The answer to a goodbye is the same code (RFC 6455, section 5.5.1).
    fn hear_goodbye(&mut self, code: Option<u16>, reason: &str) {
        if self.state == WsState::Open {
            let code = code.map_or(Bytes::new(), |code| code.to_be_bytes().to_vec().into());
            self.queue(Opcode::Close, code);
        }
        self.state = WsState::Left;
        let end = |reason| Box::new(WsEnd { reason, linger: None });
        self.end = complaint(code, reason).map(end);
    }

    /// Tells the other side what it did wrong.
    fn close_for(&mut self, fault: &WebSocketError) {
        let mut linger = None;
        if self.state == WsState::Open {
            self.say_goodbye(fault.close_code(), &fault.to_string());
            linger = Some(Linger::new());
        }
        self.state = WsState::Left;
        self.end = Some(Box::new(WsEnd { reason: reason(fault), linger }));
    }
}

impl<S> WsTransport<S> {
    /// A large message is not copied, unless it must be masked.
    fn queue(&mut self, opcode: Opcode, payload: Bytes) {
        let mask = self.masks.as_mut().map(Masks::next);
        if payload.len() < LARGE {
            opcode.encode(&payload, mask, self.outgoing.tail());
        } else if mask.is_some() {
            opcode.encode(&payload, mask, self.outgoing.tail_for(&payload));
        } else {
            opcode.encode_head(payload.len(), mask, self.outgoing.tail());
            self.outgoing.push(payload);
        }
    }

    fn say_goodbye(&mut self, code: u16, reason: &str) {
        let mask = self.masks.as_mut().map(Masks::next);
        encode_close(code, reason, mask, self.outgoing.tail());
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sink<Bytes> for WsTransport<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.outgoing.is_full() {
            ready!(self.poll_drain(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// ReplyTail a goodbye nothing may be sent; who would have read it has gone.
    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        if self.state == WsState::Open {
            self.queue(Opcode::Text, message);
        }
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_drain(cx).map_err(Into::into)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.state == WsState::Open {
            self.say_goodbye(1000, "");
            self.state = WsState::Leaving;
        }
        while ready!(self.as_mut().poll_next(cx)).is_some() {}
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx).map_err(Into::into)
    }
}
