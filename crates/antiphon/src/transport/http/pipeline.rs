//! Answers to requests that came together leave together.
//!
//! hyper flushes each answer by itself. Here what it writes gathers while it goes on serving what it
//! has already read, and goes out when it reads on, or when it has nothing left to do: [`Hold`] lets
//! the connection's future tell. So no answer waits for anything that is yet to come. hyper has a
//! switch for that too (`pipeline_flush`), which gathers without bound for a client that does not
//! read, and holds an answer back while half of the next request is there.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that gathers.
const GATHER: usize = 64 * 1024;
/// A piece of this size is worth a write of its own, and not a copy.
const LARGE: usize = 16 * 1024;
/// What is kept of the buffer for the next answer.
const KEPT: usize = 1024;

/// Whether what is written is held back, and whether anything is.
#[derive(Debug, Default)]
pub(super) struct Hold {
    on: AtomicBool,
    held: AtomicBool,
}

impl Hold {
    /// Holds back what can wait until the next read.
    pub(super) fn on(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Lets go. True when something was held back, which the next flush sends.
    pub(super) fn off(&self) -> bool {
        self.on.store(false, Ordering::Relaxed);
        self.held.load(Ordering::Relaxed)
    }
}

/// A stream whose writes gather.
#[derive(Debug)]
pub(super) struct Pipelined<S> {
    stream: S,
    /// What was read of it before.
    unread: Bytes,
    gathered: BytesMut,
    hold: Arc<Hold>,
}

impl<S> Pipelined<S> {
    pub(super) fn new(stream: S, unread: Bytes) -> Self {
        Self { stream, unread, gathered: BytesMut::new(), hold: Arc::default() }
    }

    pub(super) fn hold(&self) -> Arc<Hold> {
        self.hold.clone()
    }
}

impl<S: AsyncWrite + Unpin> Pipelined<S> {
    /// The bare stream, when all that was written has gone out, and what is still unread.
    #[cfg(feature = "ws")]
    pub(super) async fn into_inner(mut self) -> io::Result<(S, Bytes)> {
        std::future::poll_fn(|cx| self.poll_drain(cx)).await?;
        Ok((self.stream, self.unread))
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.gathered))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.gathered.advance(written);
        }
        // A socket takes all that is written; TLS may keep some of it.
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.hold.held.store(false, Ordering::Relaxed);
        if !self.gathered.try_reclaim(1) || self.gathered.capacity() > KEPT {
            self.gathered = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Makes room for a piece of this size. Ready with whether it is to be gathered.
    fn poll_room(&mut self, cx: &mut Context<'_>, size: usize) -> Poll<io::Result<bool>> {
        let gathers = size < LARGE;
        if !gathers || self.gathered.len() + size > GATHER {
            ready!(self.poll_drain(cx))?;
        }
        Poll::Ready(Ok(gathers))
    }

    /// What the stream itself keeps of a write is held back too.
    fn push(&mut self, cx: &mut Context<'_>) {
        if Pin::new(&mut self.stream).poll_flush(cx).is_pending() {
            self.hold.held.store(true, Ordering::Relaxed);
        }
    }

    fn gather(&mut self, bytes: &[u8]) {
        if self.gathered.capacity() == 0 {
            self.gathered.reserve(KEPT);
        }
        self.gathered.extend_from_slice(bytes);
        self.hold.held.store(true, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Pipelined<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Who does not read is not read either.
        if self.hold.held.load(Ordering::Relaxed) {
            ready!(self.poll_drain(cx))?;
        }
        if !self.unread.is_empty() {
            let taken = self.unread.len().min(buf.remaining());
            buf.put_slice(&self.unread.split_to(taken));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pipelined<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !ready!(self.poll_room(cx, buf.len()))? {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
            self.push(cx);
            return Poll::Ready(written);
        }
        self.gather(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let size = bufs.iter().map(|buf| buf.len()).sum();
        if !ready!(self.poll_room(cx, size))? {
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs));
            self.push(cx);
            return Poll::Ready(written);
        }
        bufs.iter().for_each(|buf| self.gather(buf));
        Poll::Ready(Ok(size))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.hold.on.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
