//! The head of a WebSocket frame (RFC 6455, section 5.2): opcode, length and mask.
//!
//! This module never consumes bytes, and never checks the order of frames: the deframer does.

use bytes::{BufMut, BytesMut};

use super::{Role, WebSocketError};

/// The size of the longest head: opcode, length in nine bytes, mask.
pub(super) const MAX_SIZE: usize = 14;
/// The longest payload of a control frame.
pub(super) const MAX_CONTROL: usize = 125;

const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;
const RESERVED: u8 = 0x70;
const IN_TWO_BYTES: u8 = 126;
const IN_EIGHT_BYTES: u8 = 127;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A message in UTF-8, or its first fragment.
    Text,
    /// A message of any bytes, or its first fragment.
    Binary,
    /// The last frame before the connection closes.
    Close,
    /// A request for a pong.
    Ping,
    /// The reply to a ping.
    Pong,
}

#[derive(Debug)]
pub(super) struct FrameHead {
    pub(super) opcode: Opcode,
    pub(super) is_last: bool,
    pub(super) length: u64,
    /// All zeros if the frame is not masked.
    pub(super) mask: [u8; 4],
}

/// A head and its size in bytes.
pub(super) struct SizedFrameHead {
    pub(super) head: FrameHead,
    pub(super) size: usize,
}

impl FrameHead {
    /// Reads the head at the front of these bytes; `None` if it is not complete.
    pub(super) fn read(buf: &[u8], role: Role) -> Result<Option<SizedFrameHead>, WebSocketError> {
        let [first, second, rest @ ..] = buf else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(WebSocketError::ReservedBits);
        }
        let opcode = Opcode::read(first & 0x0f)?;
        let is_last = first & LAST != 0;
        let short = second & !MASKED;
        if opcode.is_control() && (!is_last || usize::from(short) > MAX_CONTROL) {
            return Err(WebSocketError::Control);
        }
        match role {
            Role::Server if second & MASKED == 0 => return Err(WebSocketError::NotMasked),
            Role::Client if second & MASKED != 0 => return Err(WebSocketError::Masked),
            Role::Server | Role::Client => {}
        }
        let Some((length, rest)) = length(short, rest)? else { return Ok(None) };
        let (mask, rest) = match role {
            Role::Client => ([0; 4], rest),
            Role::Server => match rest.split_first_chunk() {
                Some((mask, rest)) => (*mask, rest),
                None => return Ok(None),
            },
        };
        let head = Self { opcode, is_last, length, mask };
        Ok(Some(SizedFrameHead { head, size: buf.len() - rest.len() }))
    }
}

/// Reads the length, and returns it with the bytes after it.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, WebSocketError> {
    let (found, least) = match short {
        IN_TWO_BYTES => {
            let found = rest.split_first_chunk();
            (found.map(|(length, rest)| (u16::from_be_bytes(*length).into(), rest)), 126)
        }
        IN_EIGHT_BYTES => {
            let found = rest.split_first_chunk();
            (found.map(|(length, rest)| (u64::from_be_bytes(*length), rest)), 0x1_0000)
        }
        short => return Ok(Some((short.into(), rest))),
    };
    match found {
        Some((length, _)) if length < least => Err(WebSocketError::Length { length }),
        Some((length, _)) if length >> 63 == 1 => Err(WebSocketError::LengthTooLarge { length }),
        found => Ok(found),
    }
}

impl Opcode {
    fn read(bits: u8) -> Result<Self, WebSocketError> {
        match bits {
            0x0 => Ok(Self::Continuation),
            0x1 => Ok(Self::Text),
            0x2 => Ok(Self::Binary),
            0x8 => Ok(Self::Close),
            0x9 => Ok(Self::Ping),
            0xa => Ok(Self::Pong),
            opcode => Err(WebSocketError::Opcode { opcode }),
        }
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }

    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    /// Appends the head of an unfragmented frame. The caller appends the payload, masked if there is a
    /// mask.
    pub fn encode_head(self, length: usize, mask: Option<[u8; 4]>, out: &mut BytesMut) {
        let masked = if mask.is_some() { MASKED } else { 0 };
        out.put_u8(LAST | self.bits());
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(length @ ..IN_TWO_BYTES), _) => out.put_u8(masked | length),
            (_, Ok(length)) => {
                out.put_u8(masked | IN_TWO_BYTES);
                out.put_u16(length);
            }
            _ => {
                out.put_u8(masked | IN_EIGHT_BYTES);
                out.put_u64(length as u64);
            }
        }
        if let Some(mask) = mask {
            out.put_slice(&mask);
        }
    }
}
