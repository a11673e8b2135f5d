//! A byte stream as a transport, with any of the framings.
//!
//! One read can return many frames, and one write can send many messages. An idle connection holds no
//! buffer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::Limits;
use antiphon_core::framing::{Deframer, Framing};
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite};

use super::TransportError;
use crate::connection::Connection;
use crate::io::Meter;
use crate::io::buffer_pool;
use crate::io::read_buffer::ReadBuffer;
use crate::io::write_buffer::{LARGE, WriteBuffer};
use crate::peer::{AtEof, LineFrames, Wire};

/// Frames over a byte stream.
///
/// ```
/// use antiphon::transport::stream::FramedStream;
/// use antiphon::{Client, Context, Framing, Limits, Router};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), antiphon::CallError> {
/// let (ours, theirs) = tokio::io::duplex(1024);
/// let max_frame = Limits::default().longest_frame();
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let _server = Client::builder().handler(router).over(FramedStream::new(theirs, None, max_frame));
/// let client = Client::over(FramedStream::new(ours, Some(Framing::Header), max_frame));
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FramedStream<S> {
    io: S,
    deframer: Deframer,
    /// The framing for messages that are sent before the framing of the peer is known.
    framing: Framing,
    incoming: ReadBuffer,
    outgoing: WriteBuffer,
    ended: bool,
    lines: LineFrames,
    meter: Arc<Meter>,
}

impl<S> FramedStream<S> {
    /// Reads and writes in this framing. Without one, detects the framing of the peer and replies in it.
    pub fn new(io: S, framing: Option<Framing>, max_frame: usize) -> Self {
        Self {
            io,
            deframer: framing
                .map_or_else(|| Deframer::detecting(max_frame), |f| Deframer::new(f, max_frame)),
            framing: framing.unwrap_or(Framing::Line),
            incoming: ReadBuffer::new(&[]),
            outgoing: WriteBuffer::default(),
            ended: false,
            lines: LineFrames::default(),
            meter: Arc::default(),
        }
    }

    /// The wire of a socket. After the end of input, accepted requests still get their responses, because
    /// the peer may still read.
    pub(crate) fn wire(
        io: S,
        facts: Connection,
        framing: Option<Framing>,
        limits: &Limits,
    ) -> Wire<Self> {
        let at_eof = AtEof::Drain(Some(limits.shutdown_timeout));
        Self::new(io, framing, limits.longest_frame()).into_wire(facts, at_eof)
    }

    /// The wire of this stream. It returns whole lines: the connection splits a line only if it does not
    /// decode.
    pub(crate) fn into_wire(mut self, facts: Connection, at_eof: AtEof) -> Wire<Self> {
        self.deframer = self.deframer.whole_lines();
        self.lines = LineFrames::undecided();
        let (meter, lines) = (self.meter.clone(), self.lines.clone());
        Wire { transport: self, facts, meter, at_eof, lines }
    }
}

#[cfg(feature = "child")]
impl<S> FramedStream<S> {
    /// Whether the end of input was read. Frames of what was read before may follow.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }
}

impl<S: AsyncRead + Unpin> Stream for FramedStream<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { io, deframer, incoming, outgoing, ended, lines, meter, .. } = &mut *self;
        loop {
            let frame = if *ended {
                deframer.finish(&mut incoming.buf)
            } else {
                deframer.next(&mut incoming.buf)
            };
            if let Some(frame) = frame {
                if deframer.framing() == Some(Framing::Line) {
                    lines.turn_on();
                }
                return Poll::Ready(Some(frame.map_err(TransportError::Frame)));
            }
            if *ended {
                return Poll::Ready(None);
            }
            let buffered = incoming.buf.len();
            let wanted = match deframer.wanted(buffered) {
                // The length of a line is unknown, so expect a long line to double.
                0 if buffered >= buffer_pool::SIZE => buffered,
                wanted => wanted,
            };
            let Poll::Ready(read) = incoming.poll_read(io, cx, wanted, meter) else {
                meter.record_boundary(deframer.is_under_way(buffered));
                incoming.release();
                outgoing.release();
                return Poll::Pending;
            };
            *ended = read? == 0;
        }
    }
}

impl<S: AsyncWrite + Unpin> Sink<Bytes> for FramedStream<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let Self { io, outgoing, meter, .. } = &mut *self;
        if outgoing.is_full() {
            ready!(outgoing.poll_drain(io, cx, meter))?;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        let framing = self.deframer.framing().unwrap_or(self.framing);
        if message.len() < LARGE {
            framing.encode(&message, self.outgoing.tail());
        } else if !framing.takes(&message) {
            framing.encode(&message, self.outgoing.tail_for(&message));
        } else {
            framing.encode_head(message.len(), self.outgoing.tail());
            self.outgoing.push(message);
            framing.encode_tail(self.outgoing.tail());
        }
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let Self { io, outgoing, meter, .. } = &mut *self;
        ready!(outgoing.poll_drain(io, cx, meter))?;
        Pin::new(io).poll_flush(cx).map_err(Into::into)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx).map_err(Into::into)
    }
}
