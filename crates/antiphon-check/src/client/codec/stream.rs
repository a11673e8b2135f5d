//! Raw streams: one line, or one `Content-Length` block, per message.

use super::{BrokenCheck, ClientEvent, MAX_HEAD, MAX_HEADERS, MAX_MESSAGE, length, take};

/// Reads one message per line, and skips empty lines.
pub(super) fn line(input: &mut Vec<u8>) -> Result<Option<ClientEvent>, BrokenCheck> {
    while let Some(end) = memchr::memchr(b'\n', input) {
        let line = take(input, 0, end + 1);
        if !line.trim_ascii().is_empty() {
            return Ok(Some(ClientEvent::Message(line.trim_ascii_end().to_vec())));
        }
    }
    if input.len() > MAX_MESSAGE {
        return Err(("line-ended", "a line is longer than any scenario needs".to_owned()));
    }
    Ok(None)
}

/// Reads the base protocol of the Language Server Protocol.
pub(super) fn header(input: &mut Vec<u8>) -> Result<Option<ClientEvent>, BrokenCheck> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let (at, found) = match httparse::parse_headers(input, &mut headers) {
        Ok(httparse::Status::Complete((at, headers))) => {
            let named =
                |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("content-length");
            (at, headers.iter().find(named).map(|header| header.value))
        }
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(("header-block", "a header block is too long".to_owned()));
        }
        Err(error) => return Err(("header-block", format!("a header block: {error}"))),
    };
    let Some(digits) = found else {
        return Err(("header-block", "a header block has no Content-Length".to_owned()));
    };
    let length = length("header-block", digits.trim_ascii())?;
    Ok((input.len() >= at + length).then(|| ClientEvent::Message(take(input, at, length))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(
        next: fn(&mut Vec<u8>) -> Result<Option<ClientEvent>, BrokenCheck>,
        input: &str,
    ) -> Result<Vec<String>, BrokenCheck> {
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        for byte in input.bytes() {
            buffer.push(byte);
            if let Some(ClientEvent::Message(message)) = next(&mut buffer)? {
                found.push(String::from_utf8_lossy(&message).into_owned());
            }
        }
        Ok(found)
    }

    #[test]
    fn a_line_is_a_message() {
        assert_eq!(all(line, "{}\n\r\n[1]\r\n{").unwrap(), ["{}", "[1]"]);
    }

    #[test]
    fn a_header_block_announces_the_length_of_a_message() {
        let input = "Content-Length: 3\r\n\r\nabccontent-type: x\r\ncontent-length: 1\r\n\r\nd";
        assert_eq!(all(header, input).unwrap(), ["abc", "d"]);
        for broken in ["X: 1\r\n\r\n", "Content-Length: -1\r\n\r\n", "{\"jsonrpc\":\r\n\r\n"] {
            assert!(all(header, broken).is_err(), "{broken}");
        }
    }
}
