//! Bytes on their way out: small messages gather in one buffer and go out in one write.
//!
//! A large message is not copied: it is written as it is, in one system call with what stands before
//! and behind it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::Meter;
use super::buffer_pool::PooledBuffer;

/// A message of this size is worth a place of its own: to copy it would cost more.
pub(crate) const LARGE: usize = 16 * 1024;
/// What gathers before a sink writes without being flushed.
const ENOUGH: usize = 64 * 1024;
/// More than any framing writes around a message.
const AROUND: usize = 64;
/// Pieces that go out in one system call.
const PIECES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    /// Large messages, and what stood between them.
    pieces: VecDeque<Bytes>,
    /// What stands behind them.
    tail: PooledBuffer,
    /// Bytes in the pieces.
    before: usize,
}

impl WriteBuffer {
    /// Where the next bytes are appended.
    pub(crate) fn tail(&mut self) -> &mut BytesMut {
        if self.tail.is_empty() { self.tail.small() } else { &mut self.tail }
    }

    /// The same for a large message that must be copied.
    pub(crate) fn tail_for(&mut self, message: &Bytes) -> &mut BytesMut {
        self.tail.large(message.len() + AROUND)
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

    /// Whether it is time to write.
    pub(crate) fn is_full(&self) -> bool {
        self.before + self.tail.len() >= ENOUGH
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

    /// Nothing is to be written for now: gives the buffer back, if it is empty.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.tail.capacity() > 0 {
            self.tail.rest();
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
        let mut slices = [IoSlice::new(&[]); PIECES];
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
            // All of its room is there again.
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

    /// All that comes out, through a pipe that takes this much at a time.
    fn drained(mut gather: WriteBuffer, pipe: usize) -> Vec<u8> {
        let (mut near, mut far) = duplex(pipe);
        let cx = &mut Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        loop {
            let done = gather.poll_drain(&mut near, cx, &Meter::default()).is_ready();
            let mut room = vec![0; pipe];
            let mut buf = ReadBuf::new(&mut room);
            let _ = Pin::new(&mut far).poll_read(cx, &mut buf);
            out.extend_from_slice(buf.filled());
            if done {
                assert!(gather.is_empty() && gather.before == 0);
                return out;
            }
        }
    }

    #[test]
    fn large_and_small_messages_go_out_in_order() {
        for pipe in [1, 7, 4096, 1 << 20] {
            let mut gather = WriteBuffer::default();
            let mut sent = Vec::new();
            for n in 0..40u8 {
                let small = vec![n; usize::from(n) % 4];
                gather.tail().extend_from_slice(&small);
                gather.push(Bytes::from(vec![100 + n; 50]));
                sent.extend_from_slice(&[small, vec![100 + n; 50]].concat());
            }
            gather.tail().extend_from_slice(b"end");
            assert_eq!(drained(gather, pipe), [&sent[..], b"end"].concat(), "{pipe} at a time");
        }
    }

    #[test]
    fn a_large_message_is_not_copied() {
        let message = Bytes::from(vec![b'x'; LARGE]);
        let mut gather = WriteBuffer::default();
        gather.tail().extend_from_slice(b"head");
        gather.push(message.clone());
        assert_eq!(gather.pieces[1].as_ptr(), message.as_ptr());
    }

    #[test]
    fn a_rest_gives_back_only_what_is_empty() {
        let mut gather = WriteBuffer::default();
        gather.tail().extend_from_slice(b"{}");
        gather.rest();
        assert_eq!(*gather.tail, "{}");
        gather.advance(2);
        gather.rest();
        assert_eq!(gather.tail.capacity(), 0);
    }
}
