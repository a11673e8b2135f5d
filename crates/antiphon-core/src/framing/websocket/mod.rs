//! WebSocket framing (RFC 6455, section 5): the boundaries of messages, pings and closes.
//!
//! This module never reads, writes, replies to a ping, or creates a mask: the owner of the socket does.
//! It never allocates for a length that a peer has only announced, and never resumes after a
//! [`WebSocketError`]: the start of the next frame is then unknown.
//!
//! Invariant: each byte is unmasked once, in the buffer it was read into, in any number of pieces. A
//! message in one frame is returned from that buffer without a copy.

mod error;
mod head;
mod mask;

use bytes::{Buf, BufMut, Bytes, BytesMut};

pub use self::error::WebSocketError;
pub use self::head::Opcode;
use self::head::{FrameHead, SizedFrameHead};
use super::reserve_hint;

/// The role of this end of the connection. A client masks the frames it sends, a server does not (5.1).
///
/// ```
/// use antiphon_core::framing::websocket::{Role, WebSocketDeframer};
///
/// let deframer = WebSocketDeframer::new(Role::Client, 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepts masked frames only.
    Server,
    /// Accepts unmasked frames only.
    Client,
}

/// A message or a control frame of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A whole text or binary message, its fragments joined.
    Message(Bytes),
    /// A ping. The owner replies with a pong that has the same payload.
    Ping(Bytes),
    /// A pong. It needs no reply.
    Pong,
    /// A close. The peer sends nothing after it.
    Close {
        /// The close code, if there is one.
        code: Option<u16>,
        /// The reason as text, empty if there is none.
        reason: String,
    },
}

/// Takes events from the front of a buffer. It resumes where the last call ran out of bytes.
///
/// ```
/// use antiphon_core::framing::websocket::{Event, Opcode, Role, WebSocketDeframer};
/// use bytes::BytesMut;
///
/// let mut wire = BytesMut::new();
/// Opcode::Text.encode(b"[1]", Some([1, 2, 3, 4]), &mut wire);
/// let mut deframer = WebSocketDeframer::new(Role::Server, 1024);
/// assert_eq!(deframer.next(&mut wire), Some(Ok(Event::Message("[1]".into()))));
/// ```
#[derive(Debug)]
pub struct WebSocketDeframer {
    role: Role,
    max_message: usize,
    frame: Option<Frame>,
    message: Option<Fragments>,
    has_failed: bool,
}

/// A frame whose head has been consumed and whose payload is at the front of the buffer.
#[derive(Debug)]
struct Frame {
    opcode: Opcode,
    is_last: bool,
    length: usize,
    /// The mask, rotated for the first byte that is still masked.
    mask: [u8; 4],
    unmasked: usize,
}

/// The received part of a message in fragments.
#[derive(Debug)]
struct Fragments {
    is_text: bool,
    payload: BytesMut,
}

impl WebSocketDeframer {
    /// Creates a deframer for this role that rejects messages of more than `max_message` bytes.
    pub fn new(role: Role, max_message: usize) -> Self {
        Self { role, max_message, frame: None, message: None, has_failed: false }
    }

    /// Returns the next event in `buf`; `None` if more bytes are needed, and always after an error. An owner
    /// that gets an error must close the connection, and must not wait for more bytes.
    ///
    /// Between calls `buf` may only grow at its end.
    pub fn next(&mut self, buf: &mut BytesMut) -> Option<Result<Event, WebSocketError>> {
        if self.has_failed {
            return None;
        }
        let event = self.take(buf);
        self.has_failed = event.is_err();
        event.transpose()
    }

    /// Whether a frame or a message has begun and not ended, with this many bytes in the buffer.
    pub fn is_under_way(&self, buffered: usize) -> bool {
        buffered > 0 || self.frame.is_some() || self.message.is_some()
    }

    /// Returns how many more bytes the current frame needs: a hint for the size of the next read,
    /// limited by [`reserve_hint`].
    pub fn wanted(&self, buffered: usize) -> usize {
        let length = self.frame.as_ref().map_or(0, |frame| frame.length);
        reserve_hint(length.saturating_sub(buffered), buffered)
    }

    fn take(&mut self, buf: &mut BytesMut) -> Result<Option<Event>, WebSocketError> {
        loop {
            let frame = match self.frame.take() {
                Some(frame) => frame,
                None => match self.open(buf)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let event = self.receive(frame, buf)?;
            if event.is_some() || self.frame.is_some() {
                return Ok(event);
            }
        }
    }

    /// Takes the head of the next frame if it is complete.
    fn open(&self, buf: &mut BytesMut) -> Result<Option<Frame>, WebSocketError> {
        let Some(SizedFrameHead { head, size }) = FrameHead::read(buf, self.role)? else {
            return Ok(None);
        };
        let FrameHead { opcode, is_last, length, mask } = head;
        match (opcode, &self.message) {
            (Opcode::Continuation, None) => return Err(WebSocketError::NothingToContinue),
            (Opcode::Text | Opcode::Binary, Some(_)) => return Err(WebSocketError::Interrupted),
            _ => {}
        }
        let length = self.admit(opcode, length)?;
        buf.advance(size);
        Ok(Some(Frame { opcode, is_last, length, mask, unmasked: 0 }))
    }

    /// Checks the limit, which applies to a whole message. So the fragments received before count too.
    fn admit(&self, opcode: Opcode, length: u64) -> Result<usize, WebSocketError> {
        let before = match &self.message {
            Some(message) if opcode == Opcode::Continuation => message.payload.len(),
            _ => 0,
        };
        let too_large = WebSocketError::TooLarge { limit: self.max_message };
        let length = usize::try_from(length).map_err(|_| too_large)?;
        if !opcode.is_control() && length > self.max_message.saturating_sub(before) {
            return Err(too_large);
        }
        Ok(length)
    }

    /// Takes the received part of a frame, and keeps the frame until it is complete.
    fn receive(
        &mut self,
        mut frame: Frame,
        buf: &mut BytesMut,
    ) -> Result<Option<Event>, WebSocketError> {
        frame.unmask(buf);
        if !frame.is_fragment() {
            if frame.is_whole() {
                return event(frame.opcode, buf.split_to(frame.length).freeze()).map(Some);
            }
            self.frame = Some(frame);
            return Ok(None);
        }
        let is_text = frame.opcode == Opcode::Text;
        let message =
            self.message.get_or_insert_with(|| Fragments { is_text, payload: BytesMut::new() });
        frame.move_to(&mut message.payload, buf);
        if !frame.is_whole() {
            self.frame = Some(frame);
        } else if frame.is_last {
            return self.message.take().map(Fragments::join).transpose();
        }
        Ok(None)
    }
}

impl Frame {
    fn is_fragment(&self) -> bool {
        self.opcode == Opcode::Continuation || !self.is_last
    }

    fn is_whole(&self) -> bool {
        self.unmasked == self.length
    }

    fn unmask(&mut self, buf: &mut BytesMut) {
        let come = self.length.min(buf.len());
        self.mask = mask::apply(self.mask, &mut buf[self.unmasked..come]);
        self.unmasked = come;
    }

    /// Moves the received part of a fragment to its message, so that it is held once.
    fn move_to(&mut self, message: &mut BytesMut, buf: &mut BytesMut) {
        message.extend_from_slice(&buf[..self.unmasked]);
        buf.advance(self.unmasked);
        self.length -= self.unmasked;
        self.unmasked = 0;
    }
}

impl Fragments {
    fn join(self) -> Result<Event, WebSocketError> {
        let opcode = if self.is_text { Opcode::Text } else { Opcode::Binary };
        event(opcode, self.payload.freeze())
    }
}

/// Converts a complete frame, or a message of joined fragments, to an event.
fn event(opcode: Opcode, payload: Bytes) -> Result<Event, WebSocketError> {
    match opcode {
        Opcode::Text if !is_utf8(&payload) => Err(WebSocketError::NotUtf8),
        Opcode::Text | Opcode::Binary | Opcode::Continuation => Ok(Event::Message(payload)),
        Opcode::Ping => Ok(Event::Ping(payload)),
        Opcode::Pong => Ok(Event::Pong),
        Opcode::Close => close(&payload),
    }
}

/// Checks for ASCII first. Most messages are ASCII, and the check is faster.
fn is_utf8(text: &[u8]) -> bool {
    text.is_ascii() || std::str::from_utf8(text).is_ok()
}

fn close(payload: &[u8]) -> Result<Event, WebSocketError> {
    let (code, reason) = match payload.split_first_chunk() {
        Some((code, reason)) => (Some(u16::from_be_bytes(*code)), reason),
        None if payload.is_empty() => (None, payload),
        None => return Err(WebSocketError::HalfACloseCode),
    };
    if let Some(code) = code.filter(|code| !may_be_sent(*code)) {
        return Err(WebSocketError::CloseCode { code });
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::NotUtf8)?;
    Ok(Event::Close { code, reason: reason.to_owned() })
}

/// Whether RFC 6455, section 7.4, and its registry allow an endpoint to send this code.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

impl Opcode {
    /// Appends one whole frame. A client passes a mask.
    pub fn encode(self, payload: &[u8], mask: Option<[u8; 4]>, out: &mut BytesMut) {
        out.reserve(head::MAX_SIZE + payload.len());
        self.encode_head(payload.len(), mask, out);
        let start = out.len();
        out.put_slice(payload);
        if let Some(mask) = mask {
            mask::apply(mask, &mut out[start..]);
        }
    }
}

/// Appends a close frame. A reason that is too long is cut (5.5).
pub fn encode_close(code: u16, reason: &str, mask: Option<[u8; 4]>, out: &mut BytesMut) {
    let end = (0..=reason.len().min(head::MAX_CONTROL - 2)).rev();
    let end = end.into_iter().find(|end| reason.is_char_boundary(*end)).unwrap_or(0);
    let payload = [&code.to_be_bytes(), &reason.as_bytes()[..end]].concat();
    Opcode::Close.encode(&payload, mask, out);
}

#[cfg(test)]
mod tests;
