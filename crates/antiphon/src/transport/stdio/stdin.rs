//! Stdin, read by one thread for the whole process.
//!
//! The thread goes on after a server has stopped. A second server on stdio gets what the first one has not
//! taken.

use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// The size of a read.
const CHUNK: usize = 64 * 1024;
/// The number of chunks that wait for the connection. The thread reads no further ahead.
const CHUNKS: usize = 4;

/// Reads the chunks of stdin.
#[derive(Debug, Default)]
pub(crate) struct Stdin {
    unread: Bytes,
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            let mut chunks = CHUNKS_OF_STDIN.lock().unwrap_or_else(PoisonError::into_inner);
            match ready!(chunks.poll_recv(cx)) {
                Some(chunk) => self.unread = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let len = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread[..len]);
        self.unread.advance(len);
        Poll::Ready(Ok(()))
    }
}

/// The chunks that no server has taken.
static CHUNKS_OF_STDIN: LazyLock<Mutex<mpsc::Receiver<io::Result<Bytes>>>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let failed = sender.clone();
    let started = thread::Builder::new().name("stdin".to_owned()).spawn(move || read(&sender));
    if let Err(error) = started {
        let _ = failed.try_send(Err(error));
    }
    Mutex::new(receiver)
});

/// Reads stdin to its end.
fn read(sender: &mpsc::Sender<io::Result<Bytes>>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match io::stdin().read(&mut chunk) {
            Ok(0) => return,
            Ok(len) => Ok(Bytes::copy_from_slice(&chunk[..len])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if sender.blocking_send(read).is_err() || is_last {
            return;
        }
    }
}
