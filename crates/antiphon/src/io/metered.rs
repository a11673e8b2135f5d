//! A byte stream that counts its progress.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Meter;

/// A byte stream that reports its progress to a [`Meter`].
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

    /// Accepts every write. Its flush stays pending while `keeps` is set.
    struct BufferingWriter {
        keeps: bool,
    }

    impl AsyncWrite for BufferingWriter {
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

    /// TLS accepts bytes that the socket below it does not accept yet.
    #[test]
    fn a_pending_flush_counts_as_blocked() {
        let meter = Arc::<Meter>::default();
        let mut stream = Metered::new(BufferingWriter { keeps: true }, meter.clone());
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
