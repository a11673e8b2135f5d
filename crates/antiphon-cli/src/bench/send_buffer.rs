//! Bytes to write.
//!
//! Large params, which are equal in every message, are written without a copy: copying them for each
//! message could cost the load generator more than the server.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use antiphon_check::raw::RawSocket;

/// The number of bytes that triggers a write.
const GATHER: usize = 256 << 10;

/// Messages that wait to be written.
#[derive(Default)]
pub(super) struct SendBuffer {
    pub(super) bytes: Vec<u8>,
    /// The position of the shared text among the bytes.
    shared_at: Option<usize>,
    /// The number of bytes written so far.
    written: usize,
}

impl SendBuffer {
    /// Puts the shared text at the current end. It can occur once per write.
    pub(super) fn share(&mut self) {
        self.shared_at = Some(self.bytes.len());
    }

    /// Returns whether the buffer should be written now.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= GATHER || self.shared_at.is_some()
    }

    /// Writes as much as possible. Returns true once everything is written.
    pub(super) fn send(
        &mut self,
        shared: &[u8],
        socket: &mut RawSocket,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        loop {
            let left = self.left(shared);
            let holds = |piece: &&[u8]| !piece.is_empty();
            let Some(first) = left.iter().position(holds) else { break };
            let last = left.iter().rposition(holds).unwrap_or(first);
            match socket.poll_write(cx, &left.map(IoSlice::new)[first..=last])? {
                Poll::Pending => return Ok(false),
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(length) => self.written += length,
            }
        }
        self.bytes.clear();
        (self.shared_at, self.written) = (None, 0);
        Ok(true)
    }

    /// Returns the unwritten parts in order.
    fn left<'a>(&'a self, shared: &'a [u8]) -> [&'a [u8]; 3] {
        let (before, after) = self.bytes.split_at(self.shared_at.unwrap_or(self.bytes.len()));
        let shared = if self.shared_at.is_some() { shared } else { &[] };
        let mut skip = self.written;
        [before, shared, after].map(|piece| {
            let (written, left) = piece.split_at(skip.min(piece.len()));
            skip -= written.len();
            left
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_text_is_written_at_its_position() {
        let mut buffer = SendBuffer::default();
        buffer.bytes.extend_from_slice(b"ab");
        assert_eq!(buffer.left(b"shared").concat(), b"ab");
        buffer.share();
        assert!(buffer.is_full());
        buffer.bytes.extend_from_slice(b"yz");
        for written in 0..=10 {
            buffer.written = written;
            assert_eq!(buffer.left(b"shared").concat(), &b"absharedyz"[written..]);
        }
    }
}
