//! Buffers that the connections of a thread lend each other.
//!
//! A connection takes one while bytes are on their way and gives it back when it has nothing to do,
//! so that an idle connection holds none and a busy one does not allocate. Rejected: a buffer for
//! each connection (8 KiB a connection that sleeps), and a new one each time (an allocation a call).

use std::cell::RefCell;

use bytes::BytesMut;

/// What a buffer holds to begin with.
pub(crate) const SIZE: usize = 8 * 1024;
/// A buffer that has grown past this is freed: a small message that is kept would keep all of it.
const MAX_SIZE: usize = 2 * SIZE;
/// One to read into, one for answers, one to write from.
const MAX_SPARES: usize = 3;

thread_local! {
    static SPARES: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer.
pub(crate) fn take() -> BytesMut {
    SPARES.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(SIZE))
}

/// Gives back a buffer. Where messages in it are still alive, it is theirs.
pub(crate) fn give(mut buf: BytesMut) {
    buf.clear();
    if buf.try_reclaim(SIZE) && buf.capacity() <= MAX_SIZE {
        SPARES.with_borrow_mut(|spares| {
            if spares.len() < MAX_SPARES {
                spares.push(buf);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_lent_again_once_nothing_in_it_is_alive() {
        let mut buf = take();
        buf.extend_from_slice(b"{}");
        let memory = buf.as_ptr();
        let message = buf.split().freeze();
        give(buf);
        let mut other = take();
        assert_ne!(other.as_ptr(), memory);
        assert_eq!(&message[..], b"{}");
        other.extend_from_slice(b"[]");
        let memory = other.as_ptr();
        drop(other.split());
        give(other);
        assert_eq!(take().as_ptr(), memory);
    }

    #[test]
    fn a_large_buffer_is_freed() {
        give(BytesMut::with_capacity(MAX_SIZE + 1));
        assert_eq!(take().capacity(), SIZE);
    }
}
