//! Bytes to be written: small messages are collected in one buffer and go out in one write.
//!
//! A large message is not copied: one vectored write sends it together with the bytes before and after
//! it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::Meter;
use super::buffer_pool::PooledBuffer;

/// From this size on, a message is a piece of its own: a copy would cost more.
pub(crate) const LARGE: usize = 16 * 1024;
/// With this many bytes, a sink writes without waiting for a flush.
const FLUSH_AT: usize = 64 * 1024;
/// More than any framing adds to a message.
const FRAMING_OVERHEAD: usize = 64;
/// The maximum number of pieces in one system call.
const MAX_SLICES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    /// Large messages, and the bytes between them.
    pieces: VecDeque<Bytes>,
    /// The bytes after the pieces.
    tail: PooledBuffer,
    /// Bytes in the pieces.
    before: usize,
}

impl WriteBuffer {
    /// The buffer to which the next bytes are appended.
    pub(crate) fn tail(&mut self) -> &mut BytesMut {
        if self.tail.is_empty() { self.tail.small() } else { &mut self.tail }
    }

    /// Like [`tail`](Self::tail), for a large message that must be copied.
    pub(crate) fn tail_for(&mut self, message: &Bytes) -> &mut BytesMut {
        self.tail.large(message.len() + FRAMING_OVERHEAD)
    }

    /// Appends a large message without copying it.
    pub(crate) fn push(&mut self, message: Bytes) {
        self.before += self.tail.len() + message.len();
        let tail = self.tail.split().freeze();
        self.pieces.extend([tail, message].into_iter().filter(|piece| !piece.is_empty()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.pieces.is_empty()
    }

    /// Whether a sink should write before it accepts more.
    pub(crate) fn is_full(&self) -> bool {
        self.before + self.tail.len() >= FLUSH_AT
    }

    /// Writes everything.
    pub(crate) fn poll_drain(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
        meter: &Meter,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let written = self.poll_write(Pin::new(io), cx);
            meter.wrote(&written);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the buffer to the pool, if it is empty. Called when there is nothing to write.
    pub(crate) fn release(&mut self) {
        if self.is_empty() && self.tail.capacity() > 0 {
            self.tail.release();
            self.pieces = VecDeque::new();
        }
    }

    fn poll_write(
        &self,
        io: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.pieces.is_empty() {
            return io.poll_write(cx, &self.tail);
        }
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let pieces = self.pieces.iter().map(|piece| &piece[..]).chain(iter::once(&self.tail[..]));
        let filled =
            slices.iter_mut().zip(pieces).map(|(slice, piece)| *slice = IoSlice::new(piece));
        let count = filled.count();
        io.poll_write_vectored(cx, &slices[..count])
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let taken = written.min(piece.len());
            piece.advance(taken);
            self.before -= taken;
            written -= taken;
            if !piece.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
        if written == self.tail.len() {
            // `clear` recovers the whole capacity; `advance` would not.
            self.tail.clear();
        } else {
            self.tail.advance(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncRead as _, ReadBuf, duplex};

    use super::*;

    /// The bytes written, through a pipe of this capacity.
    fn drained(mut buffer: WriteBuffer, pipe: usize) -> Vec<u8> {
        let (mut near, mut far) = duplex(pipe);
        let cx = &mut Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        loop {
            let done = buffer.poll_drain(&mut near, cx, &Meter::default()).is_ready();
            let mut room = vec![0; pipe];
            let mut buf = ReadBuf::new(&mut room);
            let _ = Pin::new(&mut far).poll_read(cx, &mut buf);
            out.extend_from_slice(buf.filled());
            if done {
                assert!(buffer.is_empty() && buffer.before == 0);
                return out;
            }
        }
    }

    #[test]
    fn large_and_small_messages_go_out_in_order() {
        for pipe in [1, 7, 4096, 1 << 20] {
            let mut buffer = WriteBuffer::default();
            let mut sent = Vec::new();
            for n in 0..40u8 {
                let small = vec![n; usize::from(n) % 4];
                buffer.tail().extend_from_slice(&small);
                buffer.push(Bytes::from(vec![100 + n; 50]));
                sent.extend_from_slice(&[small, vec![100 + n; 50]].concat());
            }
            buffer.tail().extend_from_slice(b"end");
            assert_eq!(drained(buffer, pipe), [&sent[..], b"end"].concat(), "{pipe} at a time");
        }
    }

    #[test]
    fn a_large_message_is_not_copied() {
        let message = Bytes::from(vec![b'x'; LARGE]);
        let mut buffer = WriteBuffer::default();
        buffer.tail().extend_from_slice(b"head");
        buffer.push(message.clone());
        assert_eq!(buffer.pieces[1].as_ptr(), message.as_ptr());
    }

    #[test]
    fn only_an_empty_buffer_returns_to_the_pool() {
        let mut buffer = WriteBuffer::default();
        buffer.tail().extend_from_slice(b"{}");
        buffer.release();
        assert_eq!(*buffer.tail, "{}");
        buffer.advance(2);
        buffer.release();
        assert_eq!(buffer.tail.capacity(), 0);
    }
}
