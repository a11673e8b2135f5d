//! WebSocket: one JSON text per message, text or binary.
//!
//! `antiphon_core::framing::websocket` parses the frames. This module replies to pings and close frames,
//! and closes with the code of a protocol error. Outgoing frames are buffered until a flush.

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

/// The maximum number of pongs that the peer has not read. A peer that exceeds it floods us with pings.
const MAX_UNSENT_PONGS: usize = 1_024;

/// Messages over a WebSocket.
pub(crate) struct WsTransport<S> {
    io: S,
    deframer: WebSocketDeframer,
    /// The masks of a client's frames; `None` for a server, which does not mask.
    masks: Option<Masks>,
    incoming: ReadBuffer,
    outgoing: WriteBuffer,
    meter: Arc<Meter>,
    unsent_pongs: usize,
    state: WsState,
    /// The error with which the connection ends, if any.
    end: Option<Box<WsEnd>>,
    /// Sends pings while the connection is idle.
    keep_alive: Option<Box<KeepAlive>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WsState {
    Open,
    /// We have sent a close frame and wait for the close frame of the peer.
    Closing,
    /// No more frames are read; buffered frames are still written.
    Closed,
}

struct WsEnd {
    reason: String,
    /// The lingering close, if we end the connection.
    linger: Option<Linger>,
}

/// Serves a stream after its handshake; `unread` are the bytes that were read after the request.
pub(crate) fn serve<S>(
    stream: S,
    unread: &[u8],
    facts: Connection,
    limits: &Limits,
) -> Wire<WsTransport<S>> {
    wire(stream, unread, facts, Role::Server, limits)
}

/// Connects and performs the handshake.
pub(crate) async fn connect(
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
    limits: &Limits,
) -> io::Result<Wire<WsTransport<TcpStream>>> {
    let stream = tcp::connect(&authority.with_default_port(80), limits).await?;
    let facts = Connection::new("ws").with_remote(stream.peer_addr().ok());
    open(stream, facts, authority, path, headers, limits).await
}

/// Like [`connect`], with TLS.
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
    let facts = Connection::new("wss").with_remote(stream.remote());
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
    // Boxed, because otherwise every future that connects would be as large as the handshake.
    let server = format!("{}://{authority}", facts.transport);
    let upgrade = Box::pin(handshake::upgrade(stream, server, authority, path, headers));
    let (stream, unread) = upgrade.await?;
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

/// Unpredictable masks (RFC 6455, section 10.3): a keyed hash of a counter.
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

/// The error for a close frame of the peer; `None` for a normal close.
fn close_error(code: Option<u16>, reason: &str) -> Option<String> {
    let code = code.filter(|code| *code > 1001)?;
    Some(format!("the peer closed the WebSocket with {code}: {reason}"))
}

fn reason(fault: &WebSocketError) -> String {
    match fault {
        WebSocketError::TooLarge { .. } => fault.to_string(),
        other => format!("the peer broke the WebSocket protocol: {other}"),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for WsTransport<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_message(cx));
        if let Some(Err(_)) = next {
            // After an error, a WebSocket returns nothing more.
            self.state = WsState::Closed;
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
        // Flushes earlier writes, because a queued pong may have no other flush.
        self.try_flush(cx)?;
        while self.state != WsState::Closed {
            match self.deframer.next(&mut self.incoming.buf) {
                Some(Ok(Event::Message(message))) => return Poll::Ready(Some(Ok(message))),
                Some(Ok(Event::Ping(payload))) => self.pong(payload, cx)?,
                Some(Ok(Event::Pong)) => {}
                Some(Ok(Event::Close { code, reason })) => self.receive_close(code, &reason),
                Some(Err(fault)) => self.close_for(&fault),
                None => ready!(self.poll_read(cx))?,
            }
        }
        // The close frame goes out first.
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
                self.state = WsState::Closed;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(read) => Poll::Ready(read.map(drop)),
            Poll::Pending => {
                meter.record_boundary(under_way);
                self.poll_keep_alive(cx)?;
                self.try_flush(cx)?;
                self.incoming.release();
                self.outgoing.release();
                Poll::Pending
            }
        }
    }

    /// Sends a ping when it is due; fails if the peer did not react to the last one.
    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(keep_alive) = &mut self.keep_alive else { return Ok(()) };
        let is_writing = !self.outgoing.is_empty();
        while let Poll::Ready(next) = keep_alive.poll(cx, &self.meter, is_writing) {
            if next == KeepAliveAction::Fail {
                let text = format!(
                    "no reply to a ping within {:?}; raise `Limits::keep_alive` if the peer needs more \
                    time",
                    keep_alive.span()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            let mask = self.masks.as_mut().map(Masks::next);
            Opcode::Ping.encode(&[], mask, self.outgoing.tail());
        }
        Ok(())
    }

    /// Writes buffered bytes, as far as the stream accepts them.
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

    /// Queues a pong. It goes out with the next flush, or when there is nothing more to read.
    fn pong(&mut self, payload: Bytes, cx: &mut Context<'_>) -> Result<(), TransportError> {
        if self.state != WsState::Open {
            return Ok(());
        }
        if self.unsent_pongs == MAX_UNSENT_PONGS {
            self.try_flush(cx)?;
        }
        if self.unsent_pongs == MAX_UNSENT_PONGS {
            let flood = "the peer sends pings faster than it reads pongs".to_owned();
            return Err(TransportError::Broken(flood));
        }
        self.unsent_pongs += 1;
        self.queue(Opcode::Pong, payload);
        Ok(())
    }

    /// Replies to a close frame with its code (RFC 6455, section 5.5.1).
    fn receive_close(&mut self, code: Option<u16>, reason: &str) {
        if self.state == WsState::Open {
            let code = code.map_or(Bytes::new(), |code| code.to_be_bytes().to_vec().into());
            self.queue(Opcode::Close, code);
        }
        self.state = WsState::Closed;
        let end = |reason| Box::new(WsEnd { reason, linger: None });
        self.end = close_error(code, reason).map(end);
    }

    /// Closes with the code and the reason of a protocol error.
    fn close_for(&mut self, fault: &WebSocketError) {
        let mut linger = None;
        if self.state == WsState::Open {
            self.send_close(fault.close_code(), &fault.to_string());
            linger = Some(Linger::new());
        }
        self.state = WsState::Closed;
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

    fn send_close(&mut self, code: u16, reason: &str) {
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

    /// Drops messages after a close frame: nothing may follow it, and the peer no longer reads.
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
            self.send_close(1000, "");
            self.state = WsState::Closing;
        }
        while ready!(self.as_mut().poll_next(cx)).is_some() {}
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx).map_err(Into::into)
    }
}
