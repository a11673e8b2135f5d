//! Lingering close: discards what the peer still sends before the socket is closed.
//!
//! The kernel resets a socket that is closed with unread bytes, and the peer then loses what we sent
//! last. So a connection that we end first discards some of the bytes that still arrive.

#[cfg(any(feature = "http", feature = "tls"))]
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
#[cfg(any(feature = "http", feature = "tls"))]
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Sleep, sleep};

use super::Meter;

/// The maximum number of bytes that a connection discards.
#[cfg(any(feature = "http", feature = "ws"))]
const MAX_DISCARDED: usize = 64 << 20;
/// The maximum time that a connection lingers.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The lingering close of one connection.
#[derive(Debug)]
pub(crate) struct Linger {
    timeout: Pin<Box<Sleep>>,
    /// The number of bytes that may still be discarded.
    budget: usize,
}

impl Linger {
    #[cfg(any(feature = "http", feature = "ws"))]
    pub(crate) fn new() -> Self {
        Self::with_budget(MAX_DISCARDED)
    }

    fn with_budget(bytes: usize) -> Self {
        Self { timeout: Box::pin(sleep(TIMEOUT)), budget: bytes }
    }

    /// Ready when the peer has ended its side too, or a limit is reached.
    pub(crate) fn poll(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        meter: &Meter,
    ) -> Poll<()> {
        if self.timeout.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut discarded = [0; 16 * 1024];
        while self.budget > 0 {
            let mut buf = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    meter.read(buf.filled().len());
                    self.budget = self.budget.saturating_sub(buf.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

/// Ends our side of a connection, then discards at most this many bytes of the peer.
#[cfg(any(feature = "http", feature = "tls"))]
pub(crate) async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin, max_discarded: usize) {
    if stream.shutdown().await.is_ok() {
        let mut linger = Linger::with_budget(max_discarded);
        let meter = Meter::default();
        poll_fn(|cx| linger.poll(&mut stream, cx, &meter)).await;
    }
}
