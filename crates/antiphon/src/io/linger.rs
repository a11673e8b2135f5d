//! The end of a connection that we end while the other side may still send.
//!
//! A socket that is closed with bytes unread is reset, and what we said last is lost on its way. So
//! some of what still comes is let by first.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::Meter;

/// The most that is let by, in bytes and in time.
const MAX_LET_BY: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Linger {
    patience: Pin<Box<Sleep>>,
    let_by: usize,
}

impl Linger {
    pub(crate) fn new() -> Self {
        Self { patience: Box::pin(sleep(PATIENCE)), let_by: 0 }
    }

    /// Ready when the other side has ended too, or has had enough.
    pub(crate) fn poll(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        meter: &Meter,
    ) -> Poll<()> {
        if self.patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut waste = [0; 16 * 1024];
        while self.let_by < MAX_LET_BY {
            let mut buf = ReadBuf::new(&mut waste);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    meter.read(buf.filled().len());
                    self.let_by += buf.filled().len();
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}
