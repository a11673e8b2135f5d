//! One server-sent event, as the HTML standard defines its text.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// One event of an [`EventStream`](super::EventStream).
///
/// ```
/// use antiphon::transport::http::ServerSentEvent;
///
/// let event = ServerSentEvent::data("{}").id("7").event("message");
/// assert_eq!(event.encode(), "event: message\nid: 7\ndata: {}\n\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ServerSentEvent {
    comment: Option<String>,
    event: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    data: Option<Bytes>,
}

impl ServerSentEvent {
    /// Creates an event with this data. A line break in the data starts another `data:` line, which a client
    /// joins again; in JSON such a break is white space.
    pub fn data(data: impl Into<Bytes>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }

    /// Creates a comment, which clients ignore. The text ends at its first line break or NUL.
    pub fn comment(text: impl Into<String>) -> Self {
        Self { comment: Some(text.into()), ..Self::default() }
    }

    /// Sets the id, which a client sends as `last-event-id` when it reconnects. The id ends at its first line
    /// break or NUL.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the type of the event. A client reads an event without one as `message`. The name ends at its
    /// first line break or NUL.
    #[must_use]
    pub fn event(mut self, name: impl Into<String>) -> Self {
        self.event = Some(name.into());
        self
    }

    /// Sets the time that a client waits before it reconnects.
    #[must_use]
    pub fn retry(mut self, delay: Duration) -> Self {
        self.retry = Some(delay);
        self
    }

    /// Returns the bytes of the event on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.data.as_ref().map_or(0, Bytes::len) + 32);
        let texts = [("", &self.comment), ("event", &self.event), ("id", &self.id)];
        for (field, value) in texts {
            if let Some(value) = value {
                // A line break or NUL would end the field: the value ends there.
                let value = value.split(['\n', '\r', '\0']).next().unwrap_or_default();
                put_line(field, value.as_bytes(), &mut out);
            }
        }
        if let Some(delay) = self.retry {
            put_line("retry", delay.as_millis().to_string().as_bytes(), &mut out);
        }
        if let Some(data) = &self.data {
            lines(data).for_each(|line| put_line("data", line, &mut out));
        }
        out.extend_from_slice(b"\n");
        out.freeze()
    }
}

fn put_line(field: &str, value: &[u8], out: &mut BytesMut) {
    for part in [field.as_bytes(), b": ", value, b"\n"] {
        out.extend_from_slice(part);
    }
}

/// The lines of a text that are ended by LF, CR or CR LF.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        rest = end.map(|end| match text[end..].starts_with(b"\r\n") {
            true => &text[end + 2..],
            false => &text[end + 1..],
        });
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_cannot_start_a_field() {
        let text = |event: ServerSentEvent| String::from_utf8(event.encode().into()).unwrap();
        assert_eq!(
            text(ServerSentEvent::data("a\nb\r\nc\rd")),
            "data: a\ndata: b\ndata: c\ndata: d\n\n"
        );
        assert_eq!(text(ServerSentEvent::data("").id("1\ndata: x")), "id: 1\ndata: \n\n");
        assert_eq!(text(ServerSentEvent::comment("a\nid: 1")), ": a\n\n");
    }
}
