//! A byte stream as a transport: any of the framings over it.
//!
//! One read fills many frames and one write sends many messages. A connection that is idle holds no
//! buffer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::framing::{Deframer, Framing};
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite};

use super::gather::{Gather, LARGE};
use super::intake::Intake;
use super::{Meter, TransportError, spare};

/// Frames over a byte stream.
#[derive(Debug)]
pub struct FramedStream<S> {
    io: S,
    deframer: Deframer,
    /// How to write until the framing of the other side is known.
    framing: Framing,
    incoming: Intake,
    outgoing: Gather,
    ended: bool,
    whole_lines: bool,
    meter: Arc<Meter>,
}

impl<S> FramedStream<S> {
    /// Reads and writes in this framing; without one, answers in what the other side speaks.
    pub fn new(io: S, framing: Option<Framing>, max_frame: usize) -> Self {
        Self {
            io,
            deframer: framing
                .map_or_else(|| Deframer::detecting(max_frame), |f| Deframer::new(f, max_frame)),
            framing: framing.unwrap_or(Framing::Line),
            incoming: Intake::new(&[]),
            outgoing: Gather::default(),
            ended: false,
            whole_lines: false,
            meter: Arc::default(),
        }
    }

    /// Gives whole lines, for a connection that splits what it cannot decode; the meter tells it.
    pub(crate) fn whole_lines(mut self) -> Self {
        self.deframer = self.deframer.whole_lines();
        self.whole_lines = true;
        self
    }

    pub(crate) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl<S: AsyncRead + Unpin> Stream for FramedStream<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { io, deframer, incoming, outgoing, ended, whole_lines, meter, .. } = &mut *self;
        loop {
            let frame = if *ended {
                deframer.finish(&mut incoming.buf)
            } else {
                deframer.next(&mut incoming.buf)
            };
            if let Some(frame) = frame {
                if *whole_lines && deframer.framing() == Some(Framing::Line) {
                    meter.takes_lines();
                }
                return Poll::Ready(Some(frame.map_err(TransportError::Frame)));
            }
            if *ended {
                return Poll::Ready(None);
            }
            let buffered = incoming.buf.len();
            let wanted = match deframer.wanted(buffered) {
                // Nobody knows how long a line is; one that is long already may be as long again.
                0 if buffered >= spare::SIZE => buffered,
                wanted => wanted,
            };
            let Poll::Ready(read) = incoming.poll_read(io, cx, wanted, meter) else {
                meter.whole(deframer.is_under_way(buffered));
                incoming.rest();
                outgoing.rest();
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
