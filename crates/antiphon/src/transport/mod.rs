//! The wires: one file and one feature each.
//!
//! A [`Transport`] carries whole messages both ways; the connection above it does the rest. HTTP is
//! none, since it cannot call back.

#[cfg(feature = "child")]
pub mod child;
mod gather;
#[cfg(feature = "ws")]
mod handshake;
#[cfg(feature = "http")]
pub mod http;
mod intake;
#[cfg(feature = "ws")]
mod keep_alive;
#[cfg(any(feature = "http", feature = "ws"))]
mod linger;
#[cfg(feature = "memory")]
pub mod memory;
pub(crate) mod spare;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;
pub mod stream;
#[cfg(feature = "tcp")]
pub(crate) mod tcp;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(all(feature = "unix", unix))]
pub(crate) mod unix;
#[cfg(feature = "ws")]
pub(crate) mod ws;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use antiphon_core::framing::FrameError;
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) use crate::peer::Meter;

/// Whole messages in, whole messages out.
///
/// What is handed to the sink may gather there; a flush sends it. A [`TransportError::Frame`] leaves
/// the stream usable, any other error ends it.
pub trait Transport:
    Stream<Item = Result<Bytes, TransportError>>
    + Sink<Bytes, Error = TransportError>
    + Send
    + Unpin
    + 'static
{
}

impl<T> Transport for T where
    T: Stream<Item = Result<Bytes, TransportError>>
        + Sink<Bytes, Error = TransportError>
        + Send
        + Unpin
        + 'static
{
}

/// What goes wrong on a wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// One message could not be taken; the next one can.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The bytes do not flow any more.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other side broke the rules of the wire.
    #[error("{0}")]
    Broken(String),
}

/// A byte stream whose progress is counted.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    pub(crate) fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }

    #[cfg(feature = "ws")]
    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.meter.read(buf.filled().len() - before);
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.meter.wrote(&poll);
        poll
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.meter.wrote(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.meter.flushed(&poll);
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes all that is written, and keeps it.
    struct Keeping {
        keeps: bool,
    }

    impl AsyncWrite for Keeping {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.keeps { Poll::Pending } else { Poll::Ready(Ok(())) }
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// TLS takes what the socket below it does not.
    #[test]
    fn what_is_taken_and_not_passed_on_is_blocked() {
        let meter = Arc::<Meter>::default();
        let mut stream = Metered::new(Keeping { keeps: true }, meter.clone());
        let cx = &mut Context::from_waker(Waker::noop());
        for keeps in [true, false] {
            stream.stream.keeps = keeps;
            assert!(Pin::new(&mut stream).poll_write(cx, b"{}").is_ready());
            assert!(!meter.is_blocked());
            assert_eq!(Pin::new(&mut stream).poll_flush(cx).is_pending(), keeps);
            assert_eq!(meter.is_blocked(), keeps);
        }
        stream.stream.keeps = true;
        assert!(Pin::new(&mut stream).poll_flush(cx).is_pending());
        stream.stream.keeps = false;
        assert!(Pin::new(&mut stream).poll_flush(cx).is_ready() && !meter.is_blocked());
    }
}
