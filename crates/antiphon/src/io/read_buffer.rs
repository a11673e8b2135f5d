//! Bytes that were received and are not a complete message yet.
//!
//! Reads start small and grow while they fill the buffer. A large announced length does not make a
//! read larger than what the deframer requests, which is bounded.
//!
//! A message that is known not to fit into a small buffer is read into a large one. If the end of that
//! message is known, no later bytes are read into the buffer: a handler that keeps part of a small
//! message would keep the whole buffer alive.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut as _;
#[cfg(feature = "http")]
use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::Meter;
use super::buffer_pool::{self, PooledBuffer};

/// The smallest free space that is worth a read.
const MIN_ROOM: usize = 2 * 1024;
/// The largest read without a request of the deframer.
const MAX_ROOM: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct ReadBuffer {
    pub(crate) buf: PooledBuffer,
    /// The size of the next read.
    room: usize,
}

impl ReadBuffer {
    /// Starts with bytes that were read before.
    pub(crate) fn new(unread: &[u8]) -> Self {
        Self { buf: PooledBuffer::own(unread), room: buffer_pool::SIZE }
    }

    /// Reads once, with room for at least `wanted` bytes. Zero bytes mean the end of the stream.
    ///
    /// `wanted` is the number of bytes that the current message still needs, or the expected size of
    /// the next message; zero if neither is known.
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

    /// Announces the length of the message at the front, once it is known and before it is taken.
    /// Returns the `wanted` value for the message after it.
    ///
    /// After a large message another large one is expected, so that it can be read at once without a
    /// copy. If a small one has arrived instead, its bytes move to a small buffer now.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn front_is(&mut self, len: usize) -> usize {
        if len > buffer_pool::SIZE {
            return len.min(buffer_pool::MAX_LARGE);
        }
        if self.buf.is_large() {
            self.buf.small();
        }
        0
    }

    /// Makes room for a read, and returns the maximum size of the read.
    #[inline]
    fn make_room(&mut self, wanted: usize) -> usize {
        if wanted > 0 && self.buf.len() + wanted > buffer_pool::SIZE {
            // One byte more than needed: if a read does not fill the room, the stream has no more
            // bytes, and no second read is needed to find that out.
            self.buf.large(wanted + 1);
            return wanted + 1;
        }
        // A buffer that has grown through many small messages is not reused.
        if self.buf.is_empty() && self.buf.capacity() > MAX_ROOM {
            self.buf.release();
        }
        let buf = self.buf.small();
        if buf.capacity() - buf.len() < wanted.max(MIN_ROOM) {
            buf.reserve(wanted.max(self.room));
        }
        (buf.capacity() - buf.len()).min(wanted.max(self.room))
    }

    /// Returns the buffer to the pool, if it is empty. Called when there is nothing to read.
    pub(crate) fn release(&mut self) {
        if self.buf.is_empty() && self.buf.capacity() > 0 {
            self.buf.release();
            self.room = buffer_pool::SIZE;
        }
    }

    /// The bytes that were received and not taken.
    #[cfg(feature = "http")]
    pub(crate) fn into_unread(mut self) -> Bytes {
        self.buf.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Reads once, and returns the number of bytes.
    fn read(buffer: &mut ReadBuffer, mut from: &[u8], wanted: usize) -> usize {
        let cx = &mut Context::from_waker(Waker::noop());
        match buffer.poll_read(&mut from, cx, wanted, &Meter::default()) {
            Poll::Ready(read) => read.unwrap_or_default(),
            Poll::Pending => 0,
        }
    }

    #[test]
    fn a_large_message_is_read_at_once_and_alone() {
        let mut buffer = ReadBuffer::new(&[]);
        assert_eq!(read(&mut buffer, &[1; 100_000], 0), buffer_pool::SIZE);
        let missing = 70_000 - buffer_pool::SIZE;
        // One byte more than the message needs shows that more bytes are available.
        assert_eq!(read(&mut buffer, &[2; 100_000], missing), missing + 1);
        let message = buffer.buf.split_to(70_000).freeze();
        assert!(message.iter().all(|byte| *byte > 0));
        // The bytes after the message go to another buffer.
        assert_eq!(read(&mut buffer, &[3; 20], 0), 20);
        assert_eq!(**buffer.buf, [&[2; 1][..], &[3; 20]].concat());
        assert!(buffer.buf.capacity() <= 2 * buffer_pool::SIZE);
    }

    #[test]
    fn only_an_empty_buffer_returns_to_the_pool() {
        let mut buffer = ReadBuffer::new(&[]);
        for wanted in [0, 70_000] {
            read(&mut buffer, b"{}", wanted);
            buffer.release();
            assert_eq!(**buffer.buf, b"{}"[..]);
            drop(buffer.buf.split());
            buffer.release();
            assert_eq!(buffer.buf.capacity(), 0);
        }
    }

    #[test]
    fn after_a_large_message_another_is_expected_and_a_small_one_is_moved() {
        let mut buffer = ReadBuffer::new(&[]);
        let expected = buffer.front_is(70_000);
        assert_eq!(read(&mut buffer, &[1; 80_000], expected), 70_001);
        assert_eq!(buffer.front_is(70_000), 70_000);
        let _large = buffer.buf.split_to(70_000).freeze();
        assert!(buffer.buf.is_large());
        assert_eq!(buffer.front_is(1), 0);
        assert!(!buffer.buf.is_large());
        assert_eq!(**buffer.buf, [1]);
        drop(buffer.buf.split());
        assert!(read(&mut buffer, &[1; 80_000], 0) <= buffer_pool::SIZE);
    }
}
