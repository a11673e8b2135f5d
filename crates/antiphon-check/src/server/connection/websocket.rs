//! WebSocket frames, client side (RFC 6455).

use super::ServerEvent;

/// The mask of every frame. A random mask protects caches in between; here there are none.
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
const FIN: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The limit of unsent pongs. Beyond it, pings get no pong: the server floods.
const MAX_PONGS: usize = 64 << 10;

/// Reads the server's frames and joins fragments to messages.
#[derive(Default)]
pub(super) struct WsFrameReader {
    /// The received part of a fragmented message.
    joined: Option<Vec<u8>>,
    /// Pongs to be sent.
    pub(super) pongs: Vec<u8>,
}

impl WsFrameReader {
    /// Returns the next message or control frame, if it is complete, and the number of bytes to consume.
    pub(super) fn next(&mut self, input: &[u8]) -> Result<(Option<ServerEvent>, usize), String> {
        let mut at = 0;
        while let Some((first, payload)) = frame_at(&input[at..])? {
            at += payload.end;
            let payload = &input[at - (payload.end - payload.start)..at];
            if let Some(event) = self.take(first, payload)? {
                return Ok((Some(event), at));
            }
        }
        Ok((None, at))
    }

    fn take(&mut self, first: u8, payload: &[u8]) -> Result<Option<ServerEvent>, String> {
        let is_last = first & FIN != 0;
        match first & 0x7F {
            TEXT | BINARY if self.joined.is_some() => {
                Err("a new message begins inside a fragmented one".to_owned())
            }
            TEXT | BINARY if is_last => Ok(Some(ServerEvent::Message(payload.to_vec()))),
            TEXT | BINARY => {
                self.joined = Some(payload.to_vec());
                Ok(None)
            }
            0 => {
                let mut joined =
                    self.joined.take().ok_or("a continuation frame without a first fragment")?;
                joined.extend_from_slice(payload);
                if joined.len() > super::MAX_INPUT {
                    return Err("a fragmented message is too large".to_owned());
                }
                if is_last {
                    return Ok(Some(ServerEvent::Message(joined)));
                }
                self.joined = Some(joined);
                Ok(None)
            }
            PING => {
                if self.pongs.len() < MAX_PONGS {
                    self.pongs.extend(frame(FIN | PONG, payload));
                }
                Ok(None)
            }
            control @ (8 | PONG) => Ok(Some(ServerEvent::Control(control, payload.to_vec()))),
            _ => Err(format!("a frame begins with {first:#04x}, which RFC 6455 does not define")),
        }
    }
}

/// Returns the first byte of the next frame, and the range of its payload.
fn frame_at(input: &[u8]) -> Result<Option<(u8, std::ops::Range<usize>)>, String> {
    let (Some(&first), Some(&second)) = (input.first(), input.get(1)) else { return Ok(None) };
    if second & 0x80 != 0 {
        return Err("a frame is masked, which only a client may do".to_owned());
    }
    let (start, length) = match second {
        126 => match input.get(2..4) {
            Some(length) => (4, length.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))),
            None => return Ok(None),
        },
        127 => match input.get(2..10) {
            Some(length) => (10, length.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))),
            None => return Ok(None),
        },
        short => (2, u64::from(short)),
    };
    let length = usize::try_from(length).map_err(|_| "a frame announces an impossible length")?;
    let end = start + length.min(usize::MAX / 2);
    Ok((input.len() >= end).then_some((first, start..end)))
}

/// Frames a message: as text, or as binary if it is not UTF-8.
pub(super) fn message(payload: &[u8]) -> Vec<u8> {
    let is_text = std::str::from_utf8(payload).is_ok();
    frame(FIN | if is_text { TEXT } else { BINARY }, payload)
}

/// Returns a masked frame.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 14);
    frame.push(first);
    match payload.len() {
        short @ ..126 => frame.push(0x80 | short as u8),
        medium @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}
