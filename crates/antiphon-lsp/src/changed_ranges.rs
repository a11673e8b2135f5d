//! A check of the ranges in document changes, before the changes are decoded.
//!
//! The type of a change is either a range with a text, or a whole text. The decoder of the type crate tries one after
//! the other, so a change with an invalid range, such as a position over 32 bits, would replace the whole document.

use antiphon::{Params, RawJson};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::types::Range;

/// Fails if a change in the params of this notification has a range that is invalid.
pub(crate) fn check(method: &str, params: Option<&Params>) -> Result<(), String> {
    let Some(params) = params.map(Params::as_json) else { return Ok(()) };
    match method {
        "textDocument/didChange" => decode::<DocumentChange>(params),
        "notebookDocument/didChange" => decode::<NotebookChange>(params),
        _ => Ok(()),
    }
}

fn decode<T: DeserializeOwned>(params: &RawJson) -> Result<(), String> {
    params.decode::<T>().map(drop).map_err(|error| error.to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only decoded")]
struct DocumentChange {
    content_changes: Vec<Change>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only decoded")]
struct Change {
    range: Option<Range>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only decoded")]
struct NotebookChange {
    change: CellsChange,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only decoded")]
struct CellsChange {
    cells: Option<Cells>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only decoded")]
struct Cells {
    text_content: Option<Vec<CellText>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only decoded")]
struct CellText {
    changes: Vec<Change>,
}
