//! Stdout, written by a thread of our own.
//!
//! Invariant: at most [`CAPACITY`] bytes wait for the thread, besides those that it writes. A flush is ready
//! when the operating system has taken every byte.

use std::io::{self, IoSlice, Write};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use tokio::io::AsyncWrite;

/// The number of bytes that may wait for the thread: as many as a pipe usually holds.
const CAPACITY: usize = 64 * 1024;

/// Queues bytes for the thread. When it is dropped, the thread writes what is queued, and ends.
#[derive(Debug)]
pub(crate) struct Stdout(Arc<Queue>);

/// The bytes between the connection and the thread.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Notifies the thread of the first bytes, and of the end.
    filled: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    unwritten: Vec<u8>,
    /// The thread writes bytes that it has taken.
    is_writing: bool,
    is_closed: bool,
    /// The failure of a write that the connection has not seen.
    failed: Option<io::Error>,
    waits_for_room: Option<Waker>,
    waits_for_flush: Option<Waker>,
}

impl Stdout {
    /// Starts a thread for one server. Each server has its own, so none gets the errors of another.
    pub(super) fn new() -> Self {
        Self::over(io::stdout())
    }

    fn over(output: impl Write + Send + 'static) -> Self {
        let queue = Arc::<Queue>::default();
        let taken = queue.clone();
        let thread = thread::Builder::new().name("stdout".to_owned());
        if let Err(error) = thread.spawn(move || write(&taken, output)) {
            queue.state().failed = Some(error);
        }
        Self(queue)
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_push(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.filled.notify_one();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies as many bytes as there is room for.
    fn poll_push(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut state = self.state();
        if let Some(error) = state.failed.take() {
            return Poll::Ready(Err(error));
        }
        let before = state.unwritten.len();
        if before >= CAPACITY {
            state.waits_for_room = Some(cx.waker().clone());
            return Poll::Pending;
        }
        for slice in slices {
            let room = CAPACITY - state.unwritten.len();
            state.unwritten.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        let pushed = state.unwritten.len() - before;
        // The thread looks here again after a write, and it was notified if there were bytes before.
        let is_idle = before == 0 && !state.is_writing;
        drop(state);
        if is_idle {
            self.filled.notify_one();
        }
        Poll::Ready(Ok(pushed))
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state();
        if let Some(error) = state.failed.take() {
            return Poll::Ready(Err(error));
        }
        if state.unwritten.is_empty() && !state.is_writing {
            return Poll::Ready(Ok(()));
        }
        state.waits_for_flush = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits for bytes, and swaps them for the empty buffer of the thread. Returns false at the end.
    fn take(&self, chunk: &mut Vec<u8>) -> bool {
        let is_idle = |state: &mut QueueState| state.unwritten.is_empty() && !state.is_closed;
        let waited = self.filled.wait_while(self.state(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut state.unwritten, chunk);
        state.is_writing = !chunk.is_empty();
        let waker = state.waits_for_room.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        !chunk.is_empty()
    }

    /// Records the outcome of a write. After a failure, the bytes behind it are dropped.
    fn record(&self, written: io::Result<()>) {
        let mut state = self.state();
        state.is_writing = false;
        if let Err(error) = written {
            state.unwritten.clear();
            state.failed = Some(error);
        }
        if !state.unwritten.is_empty() {
            return;
        }
        let wakers = [state.waits_for_room.take(), state.waits_for_flush.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Writes until the queue is closed and empty.
fn write(queue: &Queue, mut output: impl Write) {
    let mut chunk = Vec::new();
    while queue.take(&mut chunk) {
        let written = output.write_all(&chunk).and_then(|()| output.flush());
        chunk.clear();
        queue.record(written);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::ready;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    use super::*;

    /// Each write waits for its outcome, and reports its bytes before and after that.
    struct Gate {
        outcomes: Receiver<io::Result<()>>,
        begun: Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.begun.send(bytes.to_vec()).unwrap();
            self.outcomes.recv().unwrap()?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Stdout, Sender<io::Result<()>>, Receiver<Vec<u8>>) {
        let ((outcome, outcomes), (begun, writes)) = (channel(), channel());
        (Stdout::over(Gate { outcomes, begun }), outcome, writes)
    }

    async fn within<T>(future: impl Future<Output = T>) -> T {
        timeout(Duration::from_secs(10), future).await.unwrap()
    }

    fn push(stdout: &mut Stdout, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(stdout).poll_write(&mut Context::from_waker(Waker::noop()), bytes)
    }

    fn flush(stdout: &mut Stdout) -> Poll<io::Result<()>> {
        Pin::new(stdout).poll_flush(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_flush_waits_for_the_write() {
        let (mut stdout, outcome, writes) = gated();
        stdout.write_all(b"one").await.unwrap();
        assert_eq!(writes.recv().unwrap(), b"one");
        assert!(flush(&mut stdout).is_pending());
        outcome.send(Ok(())).unwrap();
        within(stdout.flush()).await.unwrap();
        drop(stdout);
        assert!(writes.recv().is_err(), "the thread ends");
    }

    #[tokio::test]
    async fn writes_behind_a_write_become_one() {
        let (mut stdout, outcome, writes) = gated();
        stdout.write_all(b"first").await.unwrap();
        assert_eq!(writes.recv().unwrap(), b"first");
        let slices = [IoSlice::new(b"second "), IoSlice::new(b"third ")];
        assert_eq!(stdout.write_vectored(&slices).await.unwrap(), 13);
        stdout.write_all(b"fourth").await.unwrap();
        outcome.send(Ok(())).unwrap();
        assert_eq!(writes.recv().unwrap(), b"second third fourth");
        assert!(flush(&mut stdout).is_pending());
        outcome.send(Ok(())).unwrap();
        within(stdout.flush()).await.unwrap();
    }

    /// Also after the connection has dropped it, since a reader may only be late.
    #[tokio::test]
    async fn the_bytes_that_wait_are_bounded_and_all_are_written() {
        let (mut stdout, outcome, writes) = gated();
        let most = vec![b'x'; CAPACITY];
        assert!(matches!(push(&mut stdout, &most), Poll::Ready(Ok(CAPACITY))));
        assert_eq!(writes.recv().unwrap(), most);
        assert!(matches!(push(&mut stdout, b"y"), Poll::Ready(Ok(1))));
        let rest = CAPACITY - 1;
        assert!(matches!(push(&mut stdout, &most), Poll::Ready(Ok(room)) if room == rest));
        assert!(push(&mut stdout, b"z").is_pending());
        outcome.send(Ok(())).unwrap();
        let waiting = poll_fn(|cx| Pin::new(&mut stdout).poll_write(cx, b"z"));
        assert_eq!(within(waiting).await.unwrap(), 1);
        drop(stdout);
        assert_eq!(writes.recv().unwrap(), [b"y", &most[1..]].concat());
        outcome.send(Ok(())).unwrap();
        assert_eq!(writes.recv().unwrap(), b"z");
        outcome.send(Ok(())).unwrap();
        assert!(writes.recv().is_err(), "the thread ends");
    }

    #[tokio::test]
    async fn an_error_reaches_the_connection_and_drops_what_is_behind_it() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (mut stdout, outcome, writes) = gated();
        stdout.write_all(b"one").await.unwrap();
        assert_eq!(writes.recv().unwrap(), b"one");
        stdout.write_all(&vec![b'x'; CAPACITY]).await.unwrap();
        outcome.send(Err(broken())).unwrap();
        let waiting = poll_fn(|cx| {
            let room = ready!(Pin::new(&mut stdout).poll_write(cx, b"two"));
            Poll::Ready(room.unwrap_err().kind())
        });
        assert_eq!(within(waiting).await, io::ErrorKind::BrokenPipe);
        within(stdout.flush()).await.unwrap();
        stdout.write_all(b"three").await.unwrap();
        assert_eq!(writes.recv().unwrap(), b"three");
        outcome.send(Err(broken())).unwrap();
        assert_eq!(within(stdout.flush()).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
