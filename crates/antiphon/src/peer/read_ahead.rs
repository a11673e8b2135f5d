//! Frames that were read before the connection could handle them. Bounded by count and by bytes.

use std::collections::VecDeque;

use antiphon_core::framing::Texts;
use bytes::Bytes;

use super::transport::TransportError;

/// One item of a transport.
pub(super) type Incoming = Result<Bytes, TransportError>;

/// Frames that were read while the connection had paused reading, in arrival order.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// The remaining JSON texts of a line that holds several: the next one, and an iterator over the
    /// others.
    texts: Option<(Bytes, Texts)>,
    frames: VecDeque<Incoming>,
    bytes: usize,
}

impl ReadAhead {
    const FRAMES: usize = 64;
    const BYTES: usize = 64 * 1024;

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.texts.is_none()
    }

    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < Self::FRAMES && self.bytes < Self::BYTES
    }

    pub(super) fn push(&mut self, incoming: Incoming) {
        self.bytes += incoming.as_ref().map_or(0, Bytes::len);
        self.frames.push_back(incoming);
    }

    /// Queues the JSON texts of one line before all other frames. They are split as they are taken.
    pub(super) fn split(&mut self, mut texts: Texts) {
        self.texts = texts.next().map(|first| (first, texts));
    }

    /// Takes the next frame. The check is inline: nothing was read ahead on most connections.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Incoming> {
        if self.is_empty() { None } else { self.pop_front() }
    }

    /// Takes the error with which the transport has ended, if it is the next item.
    pub(super) fn take_failure(&mut self) -> Option<TransportError> {
        match (&self.texts, self.frames.front()) {
            (
                None,
                Some(Err(
                    TransportError::Io(_) | TransportError::Ended(_) | TransportError::Broken(_),
                )),
            ) => self.frames.pop_front()?.err(),
            _ => None,
        }
    }

    fn pop_front(&mut self) -> Option<Incoming> {
        if let Some((text, texts)) = self.texts.take() {
            self.split(texts);
            return Some(Ok(text));
        }
        let incoming = self.frames.pop_front()?;
        self.bytes -= incoming.as_ref().map_or(0, Bytes::len);
        Some(incoming)
    }
}
