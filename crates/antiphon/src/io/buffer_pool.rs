//! Buffers that the connections of a thread lend each other.
//!
//! A connection takes one while bytes are on their way and gives it back when it has nothing to do,
//! so that an idle connection holds none and a busy one does not allocate. Rejected: a buffer for
//! each connection (8 KiB a connection that sleeps), and a new one each time (an allocation a call,
//! and for a large one the page faults of all its pages, which cost more than to read a message).
//!
//! Large buffers are lent for large messages only: a small one that is kept would keep all of its
//! buffer. For the same reason none is lent that is many times larger than what it is for.
//!
//! Invariant: a thread keeps at most [`MAX_SPARES`] small buffers and [`MAX_KEPT`] bytes of large
//! ones, and none in which a message is alive.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use bytes::BytesMut;

/// What a small buffer holds to begin with.
pub(crate) const SIZE: usize = 8 * 1024;
/// A small buffer that has grown past this is freed: a small message that is kept would keep all of
/// it.
const MAX_SIZE: usize = 2 * SIZE;
/// One to read into, one for answers, one to write from.
const MAX_SPARES: usize = 3;

/// A large buffer that is larger than this is freed.
pub(crate) const MAX_LARGE: usize = 2 << 20;
/// What large buffers are kept, all together: 36 of 112 KiB, or two of the largest.
const MAX_KEPT: usize = 4 << 20;
/// How many times larger than asked for a buffer may be.
const MAX_WASTE: usize = 4;

thread_local! {
    static SMALL: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    /// The one that was given last stands last, and is the first to be lent: it may be in the cache.
    static LARGE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// A place for a buffer: empty, or with one that is lent.
#[derive(Debug, Default)]
pub(crate) struct PooledBuffer {
    buf: BytesMut,
    /// The size of a large one; zero for any other.
    large: usize,
}

impl PooledBuffer {
    /// What must not be forgotten, in a buffer that is nobody else's.
    pub(crate) fn own(bytes: &[u8]) -> Self {
        Self { buf: bytes.into(), large: 0 }
    }

    /// Sees that there is a buffer and that it is none for large messages.
    #[inline]
    pub(crate) fn small(&mut self) -> &mut BytesMut {
        if self.large > 0 {
            self.move_to(take_small(), 0);
        } else if self.buf.capacity() == 0 {
            self.buf = take_small();
        }
        &mut self.buf
    }

    /// Makes room for this many bytes more of a message that is large with them.
    pub(crate) fn large(&mut self, more: usize) -> &mut BytesMut {
        let len = self.buf.len() + more;
        if self.large > 0 && self.buf.capacity() >= len {
            return &mut self.buf;
        }
        if self.large > MAX_LARGE {
            // It will not be kept, and one of that size grows without being copied.
            self.buf.reserve(more);
        } else {
            let buf = take_large(len);
            let size = buf.capacity();
            self.move_to(buf, size);
        }
        &mut self.buf
    }

    /// Whether it is one for large messages.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.large > 0
    }

    /// Gives the buffer back, if it is empty.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.buf.is_empty() && self.buf.capacity() > 0 {
            let buf = std::mem::take(&mut self.buf);
            give(buf, std::mem::take(&mut self.large));
        }
    }

    fn move_to(&mut self, mut buf: BytesMut, large: usize) {
        buf.extend_from_slice(&self.buf);
        let mut left = std::mem::replace(&mut self.buf, buf);
        left.clear();
        give(left, std::mem::replace(&mut self.large, large));
    }
}

impl Deref for PooledBuffer {
    type Target = BytesMut;

    #[inline]
    fn deref(&self) -> &BytesMut {
        &self.buf
    }
}

impl DerefMut for PooledBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut BytesMut {
        &mut self.buf
    }
}

fn take_small() -> BytesMut {
    SMALL.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(SIZE))
}

/// Gives back an empty buffer. Where messages in it are still alive, it is theirs.
#[inline]
fn give(buf: BytesMut, large: usize) {
    match large {
        0 => give_small(buf),
        size => give_large(buf, size),
    }
}

fn give_small(mut buf: BytesMut) {
    if buf.try_reclaim(SIZE) && buf.capacity() <= MAX_SIZE {
        SMALL.with_borrow_mut(|spares| {
            if spares.len() < MAX_SPARES {
                spares.push(buf);
            }
        });
    }
}

fn step(len: usize) -> usize {
    (len.next_power_of_two() / 8).max(1)
}

/// A new one is a little larger, so that messages of about the same size can use it.
fn take_large(len: usize) -> BytesMut {
    let fits = |spare: &BytesMut| (len..=MAX_WASTE * len).contains(&spare.capacity());
    let spare = LARGE.with_borrow_mut(|spares| {
        let place = spares.iter().rposition(fits)?;
        Some(spares.remove(place))
    });
    let size = || if len > MAX_LARGE { len } else { len.next_multiple_of(step(len)) };
    spare.unwrap_or_else(|| BytesMut::with_capacity(size()))
}

/// The oldest make room for it.
fn give_large(mut buf: BytesMut, size: usize) {
    if size > MAX_LARGE || !buf.try_reclaim(size) {
        return;
    }
    LARGE.with_borrow_mut(|spares| {
        spares.push(buf);
        let mut kept: usize = spares.iter().map(BytesMut::capacity).sum();
        while kept > MAX_KEPT {
            kept -= spares.remove(0).capacity();
        }
    });
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;

    use super::*;

    fn kept() -> Vec<usize> {
        LARGE.with_borrow(|spares| spares.iter().map(BytesMut::capacity).collect())
    }

    /// A large buffer, and where it is.
    fn large(len: usize) -> (PooledBuffer, *const u8) {
        let mut lent = PooledBuffer::default();
        let memory = lent.large(len).as_ptr();
        (lent, memory)
    }

    #[test]
    fn a_buffer_is_lent_again_once_nothing_in_it_is_alive() {
        let mut lent = PooledBuffer::default();
        lent.small().extend_from_slice(b"{}");
        let memory = lent.as_ptr();
        let message = lent.split().freeze();
        lent.rest();
        assert_ne!(lent.small().as_ptr(), memory);
        assert_eq!(&message[..], b"{}");
        lent.extend_from_slice(b"[]");
        let memory = lent.as_ptr();
        drop(lent.split());
        lent.rest();
        assert_eq!(lent.small().as_ptr(), memory);
    }

    #[test]
    fn a_large_buffer_is_lent_again_for_a_large_message() {
        let (mut lent, memory) = large(100_000);
        lent.put_bytes(b'x', 100_000);
        drop(lent.split());
        lent.rest();
        assert_eq!(lent.capacity(), 0);
        assert_eq!(large(90_000).1, memory);
    }

    #[test]
    fn a_large_buffer_is_never_lent_for_small_messages() {
        let (mut lent, memory) = large(100_000);
        lent.extend_from_slice(b"what came behind");
        assert_eq!(lent.small(), "what came behind");
        assert!(lent.capacity() <= MAX_SIZE);
        assert_eq!(kept(), [112 << 10]);
        assert_ne!(PooledBuffer::default().small().as_ptr(), memory);
        let (_other, elsewhere) = large(20_000);
        assert_ne!(elsewhere, memory);
        assert_eq!(kept(), [112 << 10]);
    }

    #[test]
    fn a_message_that_is_kept_keeps_its_buffer() {
        // Half of the buffer, which leaves as much room as a smaller buffer has.
        let (mut lent, memory) = large(128 << 10);
        lent.put_bytes(b'x', 64 << 10);
        let message = lent.split().freeze();
        lent.rest();
        assert!(kept().is_empty());
        assert_ne!(large(128 << 10).1, memory);
        assert_eq!(message.len(), 64 << 10);
    }

    #[test]
    fn what_has_come_moves_along_to_a_larger_buffer() {
        let mut lent = PooledBuffer::default();
        lent.small().extend_from_slice(b"first ");
        lent.large(30_000).extend_from_slice(b"second ");
        lent.large(1 << 20).extend_from_slice(b"third ");
        lent.large(3 << 20).extend_from_slice(b"fourth");
        assert_eq!(**lent, b"first second third fourth"[..]);
        assert_eq!(kept(), [32 << 10, 1280 << 10]);
    }

    #[test]
    fn what_a_thread_keeps_is_bounded() {
        let lent: Vec<_> = (0..100).map(|_| large(100_000).0).collect();
        lent.into_iter().for_each(|mut lent| lent.rest());
        assert_eq!(kept(), [112 << 10; MAX_KEPT / (112 << 10)]);
        // The oldest make room.
        large(MAX_LARGE).0.rest();
        assert!(kept().iter().sum::<usize>() <= MAX_KEPT);
        assert_eq!(kept().last(), Some(&MAX_LARGE));
        large(MAX_LARGE + 1).0.rest();
        assert_eq!(kept().last(), Some(&MAX_LARGE));
        let lent: Vec<_> = (0..10).map(|_| PooledBuffer { buf: take_small(), large: 0 }).collect();
        lent.into_iter().for_each(|mut lent| lent.rest());
        assert_eq!(SMALL.with_borrow(Vec::len), MAX_SPARES);
    }

    #[test]
    fn a_small_buffer_that_has_grown_is_freed() {
        PooledBuffer { buf: BytesMut::with_capacity(MAX_SIZE + 1), large: 0 }.rest();
        assert_eq!(PooledBuffer::default().small().capacity(), SIZE);
    }
}
