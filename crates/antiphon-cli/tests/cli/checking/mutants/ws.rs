//! WebSocket, server side (RFC 6455). A violation closes the connection with its code.

use std::io::{self, BufReader, Read};
use std::net::TcpStream;

use super::fault::Fault;
use super::http::{head, send};
use super::reference::{End, Reference};
use super::served::MAX_MESSAGE;
use crate::support::{KEY, PROOF};

/// A frame of the client.
struct Frame {
    is_last: bool,
    kind: u8,
    payload: Vec<u8>,
}

/// The close code.
struct Closed(u16);

/// Serves a connection: the handshake, and then one message after the other.
pub(crate) fn connection(socket: &TcpStream, reference: &Reference) -> io::Result<End> {
    let mut reader = BufReader::new(socket);
    let Some(head) = head(&mut reader)? else { return Ok(End::Connection) };
    if !head.lists("upgrade", "websocket") || !head.lists("sec-websocket-version", "13") {
        let versions = b"HTTP/1.1 426 Upgrade Required\r\nsec-websocket-version: 13\r\n\
                         connection: close\r\ncontent-length: 0\r\n\r\n";
        send(socket, versions)?;
        return Ok(End::Connection);
    }
    // The checker always sends the key of the RFC's example, so SHA-1 is not needed.
    if head.all("sec-websocket-key").next() != Some(KEY) {
        let no_key = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        send(socket, no_key)?;
        return Ok(End::Connection);
    }
    let proof = if reference.has(Fault::WsProofIsWrong) { KEY } else { PROOF };
    let upgraded = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {proof}\r\n\r\n"
    );
    send(socket, upgraded.as_bytes())?;
    messages(socket, &mut reader, reference)
}

fn messages(
    socket: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
    reference: &Reference,
) -> io::Result<End> {
    // The received part of a message, and its opcode.
    let mut begun: Option<(u8, Vec<u8>)> = None;
    loop {
        let took = match frame(reader, reference)? {
            Ok(frame) => take(socket, frame, &mut begun, reference)?,
            Err(closed) => Err(closed),
        };
        let message = match took {
            Ok(Some(message)) => message,
            Ok(None) => continue,
            Err(Closed(code)) => {
                send_frame(socket, 8, &code.to_be_bytes())?;
                return Ok(End::Connection);
            }
        };
        match reference.answers(&message) {
            Ok(answers) => {
                answers.iter().try_for_each(|text| send_frame(socket, 1, text.as_bytes()))?;
            }
            Err(end) => return Ok(end),
        }
    }
}

/// Takes a frame. Returns the message that it completes.
fn take(
    socket: &TcpStream,
    frame: Frame,
    begun: &mut Option<(u8, Vec<u8>)>,
    reference: &Reference,
) -> io::Result<Result<Option<Vec<u8>>, Closed>> {
    let Frame { is_last, kind, payload } = frame;
    match kind {
        9 if reference.has(Fault::WsPingIsIgnored) => return Ok(Ok(None)),
        9 => {
            send_frame(socket, 10, &payload)?;
            return Ok(Ok(None));
        }
        10 => return Ok(Ok(None)),
        8 if reference.has(Fault::WsCloseIsIgnored) => return Ok(Ok(None)),
        8 => return Ok(Err(Closed(close_code(&payload)))),
        _ if reference.has(Fault::WsFragmentsAreMessages) => return Ok(Ok(Some(payload))),
        0 => match begun {
            Some((_, message)) => message.extend(payload),
            None => return Ok(Err(Closed(1002))),
        },
        _ if begun.is_some() => return Ok(Err(Closed(1002))),
        _ => *begun = Some((kind, payload)),
    }
    let Some((kind, message)) = begun.take_if(|_| is_last) else { return Ok(Ok(None)) };
    let is_text = kind == 2 || std::str::from_utf8(&message).is_ok();
    if !is_text && !reference.has(Fault::WsTextIsNotChecked) {
        return Ok(Err(Closed(1007)));
    }
    Ok(Ok(Some(message)))
}

/// Returns the code of the close frame in response to a close frame.
fn close_code(payload: &[u8]) -> u16 {
    let [high, low, reason @ ..] = payload else {
        return if payload.is_empty() { 1000 } else { 1002 };
    };
    match u16::from_be_bytes([*high, *low]) {
        code @ (1000..=1003 | 1007..=1014 | 3000..=4999) => {
            if std::str::from_utf8(reason).is_ok() {
                code
            } else {
                1007
            }
        }
        _ => 1002,
    }
}

/// Reads a frame, and checks its head before it reads the payload.
fn frame(reader: &mut impl Read, reference: &Reference) -> io::Result<Result<Frame, Closed>> {
    let [first, second] = bytes(reader)?;
    let (kind, is_last) = (first & 0x0F, first & 0x80 != 0);
    let is_masked = second & 0x80 != 0;
    let length = match second & 0x7F {
        126 => u16::from_be_bytes(bytes(reader)?).into(),
        127 => u64::from_be_bytes(bytes(reader)?),
        short => short.into(),
    };
    let is_known = matches!(kind, 0..=2 | 8..=10) && first & 0x70 == 0;
    let is_control_right = kind < 8 || (is_last && length < 126);
    let may_be_bare = reference.has(Fault::WsMaskIsNotChecked);
    if !is_known || !is_control_right || !(is_masked || may_be_bare) {
        return Ok(Err(Closed(1002)));
    }
    if length > MAX_MESSAGE {
        return Ok(Err(Closed(1009)));
    }
    let mask: [u8; 4] = if is_masked { bytes(reader)? } else { [0; 4] };
    let mut payload = Vec::new();
    reader.take(length).read_to_end(&mut payload)?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Ok(Frame { is_last, kind, payload }))
}

fn bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn send_frame(socket: &TcpStream, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | kind];
    match payload.len() {
        short @ ..126 => frame.push(short as u8),
        medium @ 126..0x1_0000 => {
            frame.push(126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    send(socket, &frame)
}
