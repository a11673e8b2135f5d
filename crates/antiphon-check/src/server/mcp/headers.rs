//! The HTTP headers that an MCP client adds to its requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{MODERN, PROTOCOL_VERSION, WITHOUT_BATCHES};
use crate::transcript::McpEra;
use crate::transcript::json::Json;

/// The headers of one session, or of a modern client.
pub(crate) struct McpHeaders {
    era: McpEra,
    /// The version that the handshake has chosen.
    pub(super) version: Option<String>,
    pub(super) session: Option<String>,
}

impl McpHeaders {
    pub(super) fn new(era: McpEra) -> Self {
        Self { era, version: None, session: None }
    }

    /// Returns the headers of a POST of this message.
    pub(crate) fn of(&self, message: &[u8]) -> Vec<(String, Option<String>)> {
        let json = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok());
        let mut headers = vec![("accept", Some("application/json, text/event-stream".to_owned()))];
        match self.era {
            McpEra::Modern => headers.extend(mirrored(json.as_ref())),
            McpEra::Legacy if is_initialize(json.as_ref()) => {}
            McpEra::Legacy => headers.extend(self.session_headers()),
        }
        headers.retain(|(_, value)| value.is_some());
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the header lines of a request that is not a POST of a message.
    pub(crate) fn of_session(&self) -> Vec<u8> {
        let headers = match self.era {
            McpEra::Modern => vec![("mcp-protocol-version", Some(MODERN.to_owned()))],
            McpEra::Legacy => self.session_headers().to_vec(),
        };
        let lines = headers.into_iter().filter_map(|(name, value)| {
            value.map(|value| format!("{name}: {value}\r\n").into_bytes())
        });
        lines.flatten().collect()
    }

    /// Replaces `<session>` by the session id.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("<session>", self.session.as_deref().unwrap_or_default())
    }

    fn session_headers(&self) -> [(&'static str, Option<String>); 2] {
        let version = self.version.clone().filter(|version| &**version >= WITHOUT_BATCHES);
        [("mcp-session-id", self.session.clone()), ("mcp-protocol-version", version)]
    }
}

fn is_initialize(message: Option<&Json>) -> bool {
    let method = message.and_then(|message| message.member("method"));
    method.is_some_and(|method| method.is_text("initialize"))
}

/// Returns the headers that mirror members of a modern message.
fn mirrored(message: Option<&Json>) -> [(&'static str, Option<String>); 3] {
    let params = message.and_then(|message| message.member("params"));
    let version = params
        .and_then(|params| params.member("_meta")?.member(PROTOCOL_VERSION))
        .filter(|version| version.is_string())
        .map_or_else(|| MODERN.to_owned(), |version| encoded(&version.lossy()));
    let method = message.and_then(|message| message.member("method"));
    let method = method.filter(|method| method.is_string()).map(|method| method.lossy());
    let name = match method.as_deref() {
        Some("tools/call" | "prompts/get") => params.and_then(|params| params.member("name")),
        Some("resources/read") => params.and_then(|params| params.member("uri")),
        _ => None,
    };
    let name = name.filter(|name| name.is_string()).map(|name| encoded(&name.lossy()));
    let method = method.map(|method| encoded(&method));
    [("mcp-protocol-version", Some(version)), ("mcp-method", method), ("mcp-name", name)]
}

/// Returns the value as a header carries it.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, 0x20..=0x7E))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(headers: &McpHeaders, message: &str) -> Vec<String> {
        let headers = headers.of(message.as_bytes());
        headers.into_iter().map(|(name, value)| format!("{name}: {}", value.unwrap())).collect()
    }

    const ACCEPT: &str = "accept: application/json, text/event-stream";

    #[test]
    fn a_modern_request_is_mirrored() {
        let modern = McpHeaders::new(McpEra::Modern);
        let version = "mcp-protocol-version: 2026-07-28";
        let call = r#"{"method":"tools/call","params":{"name":"gr\u00fc\u00df"},"id":1}"#;
        let expected = [ACCEPT, version, "mcp-method: tools/call", "mcp-name: =?base64?Z3LDvMOf?="];
        assert_eq!(found(&modern, call), expected);
        let list = r#"{"method":"tools/list","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"1"}}}"#;
        assert_eq!(
            found(&modern, list),
            [ACCEPT, "mcp-protocol-version: 1", "mcp-method: tools/list"]
        );
        assert_eq!(found(&modern, "no JSON"), [ACCEPT, version]);
    }

    #[test]
    fn a_session_is_named_after_its_handshake() {
        let mut legacy = McpHeaders::new(McpEra::Legacy);
        legacy.session = Some("s1".to_owned());
        legacy.version = Some("2025-06-18".to_owned());
        let session = ["mcp-session-id: s1", "mcp-protocol-version: 2025-06-18"];
        assert_eq!(found(&legacy, r#"{"method":"initialize"}"#), [ACCEPT]);
        assert_eq!(found(&legacy, r#"{"method":"ping"}"#), [ACCEPT, session[0], session[1]]);
        let lines = String::from_utf8(legacy.of_session()).unwrap();
        assert_eq!(lines, format!("{}\r\n{}\r\n", session[0], session[1]));
        legacy.version = Some("2025-03-26".to_owned());
        assert_eq!(found(&legacy, "[]"), [ACCEPT, session[0]]);
        assert_eq!(legacy.fill("x: <session>"), "x: s1");
    }
}
