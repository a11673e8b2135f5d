//! The messages of a client, and the check of a reply.

use serde::Deserialize;

use crate::Fault;

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn initialize() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"load","version":"1"}}}}}}"#
    )
}

/// A call of `add` whose sum is different for each id.
pub(crate) fn call(id: u64, modern: bool) -> String {
    let meta = if modern {
        format!(
            r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        )
    } else {
        String::new()
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"a":{id},"b":1000}}{meta}}}}}"#
    )
}

#[derive(Deserialize)]
struct Reply {
    id: u64,
    result: CallResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    structured_content: Sum,
}

#[derive(Deserialize)]
struct Sum {
    sum: u64,
}

/// Returns the id of a correct reply to a [`call`].
pub(crate) fn check(reply: &[u8]) -> Result<u64, Fault> {
    let parsed: Result<Reply, _> = serde_json::from_slice(reply);
    match parsed {
        Ok(Reply { id, result }) if result.structured_content.sum == id + 1000 => Ok(id),
        _ => Err(format!("a wrong reply: {}", String::from_utf8_lossy(reply)).into()),
    }
}

/// The last message of an event stream: before it come a priming event and comments.
pub(crate) fn last_event(body: &[u8]) -> Result<&[u8], Fault> {
    let lines = body.split(|byte| *byte == b'\n');
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data:")).map(<[u8]>::trim_ascii);
    let last = data.rfind(|data| !data.is_empty());
    Ok(last.ok_or("an event stream without a message")?)
}
