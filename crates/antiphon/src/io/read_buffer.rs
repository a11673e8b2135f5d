//! Bytes that have come and are no message yet.
//!
//! Reads are small to begin with and grow while they fill the buffer. What was announced is no
//! reason to read more than the deframer asks for, which is bounded.
//!
//! A message that is known not to fit in a small buffer is read into a large one, and nothing else
//! is, as far as its end is known: what a handler keeps of a small message keeps its whole buffer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::Meter;
use super::buffer_pool::{self, PooledBuffer};

/// Less room than this is not worth a read.
const MIN_ROOM: usize = 2 * 1024;
/// The largest read that is not asked for.
const MAX_ROOM: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct ReadBuffer {
    pub(crate) buf: PooledBuffer,
    /// How much room the next read gets.
    room: usize,
}

impl ReadBuffer {
    /// With what was read before.
    pub(crate) fn new(unread: &[u8]) -> Self {
        Self { buf: PooledBuffer::own(unread), room: buffer_pool::SIZE }
    }

    /// Reads once, at least this much where it is there. Zero bytes are the end.
    ///
    /// What is wanted is what the message under way is sure to need, or what is expected where none
    /// is; nothing, where nobody knows.
    pub(crate) fn poll_read(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        wanted: usize,
        meter: &Meter,
    ) -> Poll<io::Result<usize>> {
        let room = self.make_room(wanted);
        let poll = poll_read_buf(Pin::new(io), cx, &mut (&mut *self.buf).limit(room));
        if let Poll::Ready(Ok(read)) = poll {
            meter.read(read);
            let full = read == room;
            self.room = if full { (self.room * 2).min(MAX_ROOM) } else { buffer_pool::SIZE };
        }
        poll
    }

    /// Says how long the message at the front is, once that is known and before it is taken; it says
    /// what to want of the next.
    ///
    /// After a large one another is expected, which is then read at once and not moved. Where a small
    /// one has come instead, it is moved now.
    pub(crate) fn front_is(&mut self, len: usize) -> usize {
        if len > buffer_pool::SIZE {
            return len.min(buffer_pool::MAX_LARGE);
        }
        if self.buf.is_large() {
            self.buf.small();
        }
        0
    }

    /// Makes room for a read and says how large it may be.
    #[inline]
    fn make_room(&mut self, wanted: usize) -> usize {
        if wanted > 0 && self.buf.len() + wanted > buffer_pool::SIZE {
            // A byte more than there should be: a read that is not filled has taken all, and need not
            // be tried again to know it.
            self.buf.large(wanted + 1);
            return wanted + 1;
        }
        // One that small messages have made large is not filled again.
        if self.buf.is_empty() && self.buf.capacity() > MAX_ROOM {
            self.buf.rest();
        }
        let buf = self.buf.small();
        if buf.capacity() - buf.len() < wanted.max(MIN_ROOM) {
            buf.reserve(wanted.max(self.room));
        }
        (buf.capacity() - buf.len()).min(wanted.max(self.room))
    }

    /// There is nothing to read: gives the buffer back, if it is empty.
    pub(crate) fn rest(&mut self) {
        if self.buf.is_empty() && self.buf.capacity() > 0 {
            self.buf.rest();
            self.room = buffer_pool::SIZE;
        }
    }

    /// What has come and was not taken.
    pub(crate) fn into_unread(mut self) -> Bytes {
        self.buf.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Reads once; how much came.
    fn read(intake: &mut ReadBuffer, mut from: &[u8], wanted: usize) -> usize {
        let cx = &mut Context::from_waker(Waker::noop());
        match intake.poll_read(&mut from, cx, wanted, &Meter::default()) {
            Poll::Ready(read) => read.unwrap_or_default(),
            Poll::Pending => 0,
        }
    }

    #[test]
    fn a_large_message_is_read_at_once_and_alone() {
        let mut intake = ReadBuffer::new(&[]);
        assert_eq!(read(&mut intake, &[1; 100_000], 0), buffer_pool::SIZE);
        let missing = 70_000 - buffer_pool::SIZE;
        // A byte more than it needs shows that there is more.
        assert_eq!(read(&mut intake, &[2; 100_000], missing), missing + 1);
        let message = intake.buf.split_to(70_000).freeze();
        assert!(message.iter().all(|byte| *byte > 0));
        // What comes behind it goes elsewhere.
        assert_eq!(read(&mut intake, &[3; 20], 0), 20);
        assert_eq!(**intake.buf, [&[2; 1][..], &[3; 20]].concat());
        assert!(intake.buf.capacity() <= 2 * buffer_pool::SIZE);
    }

    #[test]
    fn a_rest_gives_back_only_what_is_empty() {
        let mut intake = ReadBuffer::new(&[]);
        for wanted in [0, 70_000] {
            read(&mut intake, b"{}", wanted);
            intake.rest();
            assert_eq!(**intake.buf, b"{}"[..]);
            drop(intake.buf.split());
            intake.rest();
            assert_eq!(intake.buf.capacity(), 0);
        }
    }

    #[test]
    fn after_a_large_message_another_is_expected_and_a_small_one_is_moved() {
        let mut intake = ReadBuffer::new(&[]);
        let expected = intake.front_is(70_000);
        assert_eq!(read(&mut intake, &[1; 80_000], expected), 70_001);
        assert_eq!(intake.front_is(70_000), 70_000);
        let _large = intake.buf.split_to(70_000).freeze();
        assert!(intake.buf.is_large());
        assert_eq!(intake.front_is(1), 0);
        assert!(!intake.buf.is_large());
        assert_eq!(**intake.buf, [1]);
        drop(intake.buf.split());
        assert!(read(&mut intake, &[1; 80_000], 0) <= buffer_pool::SIZE);
    }
}
