//! Bytes that were read and not yet consumed.

/// The initial size. The buffer grows for a larger reply.
const ROOM: usize = 64 << 10;

/// A buffer with two cursors: consumed bytes, unread bytes, free space.
pub(super) struct ReceiveBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReceiveBuffer {
    /// Starts with bytes that were already received.
    pub(super) fn new(early: &[u8]) -> Self {
        let mut bytes = early.to_vec();
        bytes.resize(ROOM.max(early.len() * 2), 0);
        Self { bytes, start: 0, end: early.len() }
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns free space for the next read.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.bytes.len() - self.end < ROOM / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end > self.bytes.len() / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Marks bytes of the free space as read.
    pub(super) fn add(&mut self, length: usize) {
        self.end += length;
    }

    /// Marks bytes as consumed.
    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_and_keeps_unread_bytes() {
        let mut buffer = ReceiveBuffer::new(b"ab");
        let mut expected = b"ab".to_vec();
        for round in 0..2_000_usize {
            let piece = vec![round as u8; (round * 37) % 9_000 + 1];
            let room = buffer.room();
            let length = piece.len().min(room.len());
            assert!(length > 0);
            room[..length].copy_from_slice(&piece[..length]);
            buffer.add(length);
            expected.extend_from_slice(&piece[..length]);
            let used = if round % 100 == 99 { expected.len() } else { expected.len() / 50 };
            buffer.consume(used);
            expected.drain(..used);
            assert!(buffer.unread() == expected);
        }
    }
}
