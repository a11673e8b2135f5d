//! A byte stream as a transport: any of the framings over it.
//!
//! One read fills many frames and one write sends many messages. The buffers are given back when
//! they are empty, so that an idle connection holds none.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use antiphon_core::framing::{Deframer, Framing};
use bytes::{Buf, Bytes, BytesMut};
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::poll_read_buf;

use super::{Meter, TransportError};

/// Room for a read when nothing is known of what comes.
const READ: usize = 8 * 1024;
/// What gathers before the sink writes without being flushed.
const GATHER: usize = 64 * 1024;

/// Frames over a byte stream.
#[derive(Debug)]
pub struct FramedStream<S> {
    io: S,
    deframer: Deframer,
    /// How to write until the framing of the other side is known.
    framing: Framing,
    incoming: BytesMut,
    outgoing: BytesMut,
    ended: bool,
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
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            ended: false,
            meter: Arc::default(),
        }
    }

    pub(crate) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl<S: AsyncRead + Unpin> Stream for FramedStream<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let frame = if this.ended {
                this.deframer.finish(&mut this.incoming)
            } else {
                this.deframer.next(&mut this.incoming)
            };
            if let Some(frame) = frame {
                return Poll::Ready(Some(frame.map_err(TransportError::Frame)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let wanted = this.deframer.wanted(this.incoming.len());
            this.incoming.reserve(wanted.max(READ));
            match poll_read_buf(Pin::new(&mut this.io), cx, &mut this.incoming) {
                Poll::Pending => {
                    this.meter.whole(this.deframer.is_under_way(this.incoming.len()));
                    if this.incoming.is_empty() {
                        this.incoming = BytesMut::new();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(read) => {
                    let read = read?;
                    this.meter.read(read);
                    this.ended = read == 0;
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> FramedStream<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let written = Pin::new(&mut self.io).poll_write(cx, &self.outgoing);
            self.meter.wrote(&written);
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.advance(written);
        }
        self.outgoing = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Sink<Bytes> for FramedStream<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.outgoing.len() >= GATHER {
            ready!(self.poll_drain(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        let framing = self.deframer.framing().unwrap_or(self.framing);
        framing.encode(&message, &mut self.outgoing);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_flush(cx).map_err(Into::into)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx).map_err(Into::into)
    }
}
