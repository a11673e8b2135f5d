//! What is to be written.
//!
//! A large text that is the same in every message is written from where it is: to copy it for each
//! would make the load dearer than what is measured.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use antiphon_check::raw::RawSocket;

/// What gathers before it is written.
const GATHER: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    /// Where among them the shared text stands.
    shared_at: Option<usize>,
    /// How much of all is written.
    written: usize,
}

impl Outgoing {
    /// The shared text comes next; it is there once at most until all is written.
    pub(super) fn share(&mut self) {
        self.shared_at = Some(self.bytes.len());
    }

    /// Whether it is time to write.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= GATHER || self.shared_at.is_some()
    }

    /// Writes all, or as much as can be; true when that was all.
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

    /// What is not written yet, in its order.
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
    fn the_shared_text_stands_where_it_was_put() {
        let mut outgoing = Outgoing::default();
        outgoing.bytes.extend_from_slice(b"ab");
        assert_eq!(outgoing.left(b"shared").concat(), b"ab");
        outgoing.share();
        assert!(outgoing.is_full());
        outgoing.bytes.extend_from_slice(b"yz");
        for written in 0..=10 {
            outgoing.written = written;
            assert_eq!(outgoing.left(b"shared").concat(), &b"absharedyz"[written..]);
        }
    }
}
