//! A pool of buffers, one per thread, that the connections of the thread share.
//!
//! A connection takes a buffer while bytes are in transit and returns it when it is idle. So an idle
//! connection holds no buffer, and a busy one does not allocate. Rejected alternatives: one buffer per
//! connection (8 KiB per idle connection), and a new buffer each time (one allocation per call; for a
//! large buffer also the page faults of all its pages, which cost more than reading a message).
//!
//! Large buffers serve large messages only: a small message that a handler keeps would keep the whole
//! buffer alive. For the same reason the pool never returns a buffer many times larger than requested.
//!
//! Invariant: a thread keeps at most [`MAX_SMALL_KEPT`] small buffers and [`MAX_LARGE_KEPT`] bytes of large
//! buffers, and never one that a live message still uses.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use bytes::BytesMut;

/// The initial capacity of a small buffer.
pub(crate) const SIZE: usize = 8 * 1024;
/// A small buffer that has grown past this is freed: a small message that a handler keeps would keep
/// the whole buffer alive.
const MAX_SIZE: usize = 2 * SIZE;
/// The number of small buffers that a thread keeps: one for reads, one for replies, one for writes.
const MAX_SMALL_KEPT: usize = 3;

/// A large buffer that is larger than this is freed.
pub(crate) const MAX_LARGE: usize = 2 << 20;
/// The total capacity of the large buffers that a thread keeps: 36 of 112 KiB, or two of the largest.
const MAX_LARGE_KEPT: usize = 4 << 20;
/// The pool returns no large buffer with more than this many times the requested capacity.
const MAX_WASTE: usize = 4;

thread_local! {
    static SMALL: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    /// A stack: the buffer returned last is reused first, because it may still be in the CPU cache.
    static LARGE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// A buffer from the pool, or no buffer. It holds no memory until [`small`](Self::small) or
/// [`large`](Self::large) takes a buffer.
#[derive(Debug, Default)]
pub(crate) struct PooledBuffer {
    buf: BytesMut,
    /// The capacity of a large buffer; zero for a small one.
    large: usize,
}

impl PooledBuffer {
    /// Copies these bytes into a buffer that does not come from the pool.
    pub(crate) fn own(bytes: &[u8]) -> Self {
        Self { buf: bytes.into(), large: 0 }
    }

    /// Ensures that there is a buffer and that it is a small one.
    #[inline]
    pub(crate) fn small(&mut self) -> &mut BytesMut {
        if self.large > 0 {
            self.move_to(take_small(), 0);
        } else if self.buf.capacity() == 0 {
            self.buf = take_small();
        }
        &mut self.buf
    }

    /// Makes room for this many more bytes, in a large buffer.
    pub(crate) fn large(&mut self, more: usize) -> &mut BytesMut {
        let len = self.buf.len() + more;
        if self.large > 0 && self.buf.capacity() >= len {
            return &mut self.buf;
        }
        if self.large > MAX_LARGE {
            // The pool does not keep a buffer of this size, and the allocator can grow it without a
            // copy.
            self.buf.reserve(more);
        } else {
            let buf = take_large(len);
            let size = buf.capacity();
            self.move_to(buf, size);
        }
        &mut self.buf
    }

    /// Whether it holds a large buffer.
    #[cfg(any(feature = "http", test))]
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.large > 0
    }

    /// Returns the buffer to the pool, if it is empty.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.buf.is_empty() && self.buf.capacity() > 0 {
            let buf = std::mem::take(&mut self.buf);
            put_back(buf, std::mem::take(&mut self.large));
        }
    }

    fn move_to(&mut self, mut buf: BytesMut, large: usize) {
        buf.extend_from_slice(&self.buf);
        let mut previous = std::mem::replace(&mut self.buf, buf);
        previous.clear();
        put_back(previous, std::mem::replace(&mut self.large, large));
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

/// Returns an empty buffer to the pool, unless live messages still use its memory.
#[inline]
fn put_back(buf: BytesMut, large: usize) {
    match large {
        0 => put_back_small(buf),
        size => put_back_large(buf, size),
    }
}

fn put_back_small(mut buf: BytesMut) {
    if buf.try_reclaim(SIZE) && buf.capacity() <= MAX_SIZE {
        SMALL.with_borrow_mut(|kept| {
            if kept.len() < MAX_SMALL_KEPT {
                kept.push(buf);
            }
        });
    }
}

/// The granularity of capacities for messages of about this length.
fn step(len: usize) -> usize {
    (len.next_power_of_two() / 8).max(1)
}

/// Takes a large buffer. A new one is slightly larger than requested, so that messages of about the
/// same size can reuse it.
fn take_large(len: usize) -> BytesMut {
    let fits = |kept: &BytesMut| (len..=MAX_WASTE * len).contains(&kept.capacity());
    let found = LARGE.with_borrow_mut(|kept| {
        let index = kept.iter().rposition(fits)?;
        Some(kept.remove(index))
    });
    let size = || if len > MAX_LARGE { len } else { len.next_multiple_of(step(len)) };
    found.unwrap_or_else(|| BytesMut::with_capacity(size()))
}

/// Returns a large buffer, and frees the oldest ones while the pool holds too much.
fn put_back_large(mut buf: BytesMut, size: usize) {
    if size > MAX_LARGE || !buf.try_reclaim(size) {
        return;
    }
    LARGE.with_borrow_mut(|kept| {
        kept.push(buf);
        let mut bytes: usize = kept.iter().map(BytesMut::capacity).sum();
        while bytes > MAX_LARGE_KEPT {
            bytes -= kept.remove(0).capacity();
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

    /// A large buffer, and its address.
    fn large(len: usize) -> (PooledBuffer, *const u8) {
        let mut pooled = PooledBuffer::default();
        let memory = pooled.large(len).as_ptr();
        (pooled, memory)
    }

    #[test]
    fn a_buffer_is_reused_once_no_message_uses_it() {
        let mut pooled = PooledBuffer::default();
        pooled.small().extend_from_slice(b"{}");
        let memory = pooled.as_ptr();
        let message = pooled.split().freeze();
        pooled.release();
        assert_ne!(pooled.small().as_ptr(), memory);
        assert_eq!(&message[..], b"{}");
        pooled.extend_from_slice(b"[]");
        let memory = pooled.as_ptr();
        drop(pooled.split());
        pooled.release();
        assert_eq!(pooled.small().as_ptr(), memory);
    }

    #[test]
    fn a_large_buffer_is_reused_for_a_large_message() {
        let (mut pooled, memory) = large(100_000);
        pooled.put_bytes(b'x', 100_000);
        drop(pooled.split());
        pooled.release();
        assert_eq!(pooled.capacity(), 0);
        assert_eq!(large(90_000).1, memory);
    }

    #[test]
    fn a_large_buffer_is_never_reused_for_small_messages() {
        let (mut pooled, memory) = large(100_000);
        pooled.extend_from_slice(b"the bytes after it");
        assert_eq!(pooled.small(), "the bytes after it");
        assert!(pooled.capacity() <= MAX_SIZE);
        assert_eq!(kept(), [112 << 10]);
        assert_ne!(PooledBuffer::default().small().as_ptr(), memory);
        let (_other, elsewhere) = large(20_000);
        assert_ne!(elsewhere, memory);
        assert_eq!(kept(), [112 << 10]);
    }

    #[test]
    fn a_live_message_keeps_its_buffer_out_of_the_pool() {
        // The message uses half of the buffer. The other half is as large as a smaller buffer.
        let (mut pooled, memory) = large(128 << 10);
        pooled.put_bytes(b'x', 64 << 10);
        let message = pooled.split().freeze();
        pooled.release();
        assert!(kept().is_empty());
        assert_ne!(large(128 << 10).1, memory);
        assert_eq!(message.len(), 64 << 10);
    }

    #[test]
    fn buffered_bytes_are_copied_to_a_larger_buffer() {
        let mut pooled = PooledBuffer::default();
        pooled.small().extend_from_slice(b"first ");
        pooled.large(30_000).extend_from_slice(b"second ");
        pooled.large(1 << 20).extend_from_slice(b"third ");
        pooled.large(3 << 20).extend_from_slice(b"fourth");
        assert_eq!(**pooled, b"first second third fourth"[..]);
        assert_eq!(kept(), [32 << 10, 1280 << 10]);
    }

    #[test]
    fn the_pool_of_a_thread_is_bounded() {
        let pooled: Vec<_> = (0..100).map(|_| large(100_000).0).collect();
        pooled.into_iter().for_each(|mut pooled| pooled.release());
        assert_eq!(kept(), [112 << 10; MAX_LARGE_KEPT / (112 << 10)]);
        // The pool frees the oldest.
        large(MAX_LARGE).0.release();
        assert!(kept().iter().sum::<usize>() <= MAX_LARGE_KEPT);
        assert_eq!(kept().last(), Some(&MAX_LARGE));
        large(MAX_LARGE + 1).0.release();
        assert_eq!(kept().last(), Some(&MAX_LARGE));
        let pooled: Vec<_> =
            (0..10).map(|_| PooledBuffer { buf: take_small(), large: 0 }).collect();
        pooled.into_iter().for_each(|mut pooled| pooled.release());
        assert_eq!(SMALL.with_borrow(Vec::len), MAX_SMALL_KEPT);
    }

    #[test]
    fn a_small_buffer_that_has_grown_is_freed() {
        PooledBuffer { buf: BytesMut::with_capacity(MAX_SIZE + 1), large: 0 }.release();
        assert_eq!(PooledBuffer::default().small().capacity(), SIZE);
    }
}
