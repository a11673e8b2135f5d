//! Bytes that have come and are no message yet.
//!
//! Reads are small to begin with and grow while they fill the buffer. What was announced is no
//! reason to read more than the deframer asks for, which is bounded.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, BytesMut};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::{Meter, spare};

/// Less room than this is not worth a read.
const MIN_ROOM: usize = 2 * 1024;
/// The largest read that is not asked for.
const MAX_ROOM: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Intake {
    pub(super) buf: BytesMut,
    /// How much room the next read gets.
    room: usize,
}

impl Intake {
    /// With what was read before.
    pub(super) fn new(unread: &[u8]) -> Self {
        Self { buf: unread.into(), room: spare::SIZE }
    }

    /// Reads once, at least this much where it is there. Zero bytes are the end.
    pub(super) fn poll_read(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        wanted: usize,
        meter: &Meter,
    ) -> Poll<io::Result<usize>> {
        // One that a large message has left is not filled again by small ones.
        if self.buf.is_empty() && self.buf.capacity() > MAX_ROOM.max(wanted) {
            self.buf = BytesMut::new();
        }
        if self.buf.capacity() == 0 {
            self.buf = spare::take();
        }
        if self.buf.capacity() - self.buf.len() < wanted.max(MIN_ROOM) {
            self.buf.reserve(wanted.max(self.room));
        }
        let room = (self.buf.capacity() - self.buf.len()).min(wanted.max(self.room));
        let poll = poll_read_buf(Pin::new(io), cx, &mut (&mut self.buf).limit(room));
        if let Poll::Ready(Ok(read)) = poll {
            meter.read(read);
            let full = read == room;
            self.room = if full { (self.room * 2).min(MAX_ROOM) } else { spare::SIZE };
        }
        poll
    }

    /// There is nothing to read: gives the buffer back, if it is empty.
    pub(super) fn rest(&mut self) {
        if self.buf.is_empty() && self.buf.capacity() > 0 {
            spare::give(std::mem::take(&mut self.buf));
            self.room = spare::SIZE;
        }
    }
}
