//! A stream that was partly read before, for the handover from the fast path to hyper.
//!
//! Rejected: gathering hyper's responses to pipelined requests into one write here. hyper only serves
//! the requests that the fast path leaves to it, and clients rarely pipeline those.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose first bytes are already in memory.
#[derive(Debug)]
pub(super) struct PrefixedStream<S> {
    stream: S,
    prefix: Bytes,
}

impl<S> PrefixedStream<S> {
    pub(super) fn new(stream: S, prefix: Bytes) -> Self {
        Self { stream, prefix }
    }

    /// The stream, and the part of the prefix that was not read.
    #[cfg(feature = "ws")]
    pub(super) fn into_parts(self) -> (S, Bytes) {
        (self.stream, self.prefix)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefixedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.stream).poll_read(poller, buf);
        }
        let length = self.prefix.len().min(buf.remaining());
        buf.put_slice(&self.prefix.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(poller, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(poller, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(poller)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(poller)
    }
}
