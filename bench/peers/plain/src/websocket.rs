//! The handshake, and complete masked text frames.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

pub(crate) async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let key = key(&head).ok_or_else(|| io::Error::other("no handshake"))?;
    let accept = BASE64_STANDARD.encode(sha1_smol::Sha1::from(key + GUID).digest().bytes());
    let reply = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(reply.as_bytes()).await?;
    crate::converse(stream, answer).await
}

fn key(head: &[u8]) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok()?;
    let key = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("sec-websocket-key"))?;
    String::from_utf8(key.value.to_vec()).ok()
}

fn answer(input: &mut [u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let Some((head, len)) = lengths(input) else { return Ok(None) };
    let Some((mask, payload)) =
        input.get_mut(head - 4..head + len).and_then(|f| f.split_at_mut_checked(4))
    else {
        return Ok(None);
    };
    unmask(payload, [mask[0], mask[1], mask[2], mask[3]]);
    let payload = &input[head..head + len];
    match input[0] {
        TEXT => reply(payload, out),
        CLOSE => return Err(io::ErrorKind::ConnectionAborted.into()),
        opcode => return Err(io::Error::other(format!("frame {opcode:#x} is not served"))),
    }
    Ok(Some(head + len))
}

/// Returns the lengths of head, mask included, and payload.
fn lengths(input: &[u8]) -> Option<(usize, usize)> {
    match input.get(1)? & 0x7f {
        126 => Some((8, u16::from_be_bytes(input.get(2..4)?.try_into().ok()?).into())),
        127 => Some((14, u64::from_be_bytes(input.get(2..10)?.try_into().ok()?) as usize)),
        len => Some((6, len.into())),
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u32::from_ne_bytes(mask);
    let (words, rest) = payload.as_chunks_mut::<4>();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    rest.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

/// The length comes before the payload, so a long form is inserted when the length is known.
fn reply(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[TEXT, 0]);
    let start = out.len();
    hand::answer(message, out);
    match out.len() - start {
        len @ ..126 => out[start - 1] = len as u8,
        len @ ..65_536 => {
            out[start - 1] = 126;
            out.splice(start..start, (len as u16).to_be_bytes());
        }
        len => {
            out[start - 1] = 127;
            out.splice(start..start, (len as u64).to_be_bytes());
        }
    }
}
