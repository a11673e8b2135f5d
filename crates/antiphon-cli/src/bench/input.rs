//! What was read and is not used up.

/// What one read takes at first; a reply that is larger makes more room.
const ROOM: usize = 64 << 10;

/// The bytes between two cursors; before them all is used up, and behind them is room.
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// With what came already.
    pub(super) fn new(early: &[u8]) -> Self {
        let mut bytes = early.to_vec();
        bytes.resize(ROOM.max(early.len() * 2), 0);
        Self { bytes, start: 0, end: early.len() }
    }

    pub(super) fn unused(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where the next read goes.
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

    /// So much was read into the room.
    pub(super) fn add(&mut self, length: usize) {
        self.end += length;
    }

    /// So much is used up.
    pub(super) fn pass(&mut self, length: usize) {
        self.start += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_any_reply() {
        let mut input = Input::new(b"ab");
        let mut expected = b"ab".to_vec();
        for round in 0..2_000_usize {
            let piece = vec![round as u8; (round * 37) % 9_000 + 1];
            let room = input.room();
            let length = piece.len().min(room.len());
            assert!(length > 0);
            room[..length].copy_from_slice(&piece[..length]);
            input.add(length);
            expected.extend_from_slice(&piece[..length]);
            let used = if round % 100 == 99 { expected.len() } else { expected.len() / 50 };
            input.pass(used);
            expected.drain(..used);
            assert!(input.unused() == expected);
        }
    }
}
