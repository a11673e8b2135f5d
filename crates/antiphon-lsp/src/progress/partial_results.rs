//! Partial results on the server: how it sends the result of a request in parts.

use std::sync::Arc;

use antiphon::{CallError, ErrorObject};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::report_line::ReportLine;
use super::reporters::Registered;
use super::{PartialResultParams, ResultOf};
use crate::Editor;
use crate::types::{Request, RequestWithPartialResults};

/// The result of a request, sent in parts if the editor wants them, and collected otherwise. Created by
/// [`Editor::partial_results`].
#[derive(Debug)]
pub struct PartialResults<R: RequestWithPartialResults> {
    result: Parts<R::Result>,
}

#[derive(Debug)]
enum Parts<T> {
    /// The editor receives each part immediately. The response is the empty result.
    Sent { line: Arc<ReportLine>, _registered: Registered, empty: T },
    /// The parts so far, merged into one value.
    Collected(Value, T),
}

impl<R: RequestWithPartialResults> PartialResults<R> {
    pub(crate) fn new<P: PartialResultParams<Request = R>>(editor: &Editor, params: &P) -> Self {
        let empty: ResultOf<P> = P::empty_result();
        let result = match params.partial_result_token() {
            Some(token) => {
                let (peer, token) = (editor.peer().clone(), Some(token.clone()));
                let (line, registered) =
                    editor.reporters().register(peer, token, CancellationToken::new());
                Parts::Sent { line, _registered: registered, empty }
            }
            None => Parts::Collected(Value::Null, empty),
        };
        Self { result }
    }

    /// Returns whether each part is sent immediately. If not, small parts have no advantage.
    pub fn is_streaming(&self) -> bool {
        matches!(self.result, Parts::Sent { .. })
    }

    /// Adds a part to the result. Waits while the write queue is full. If parts are sent
    /// [immediately](Self::is_streaming), a part that is added after the response is not sent.
    pub async fn send(&mut self, part: R::PartialResult) -> Result<(), CallError> {
        match &mut self.result {
            Parts::Sent { line, .. } => line.send(part).await,
            Parts::Collected(collected, _) => {
                let part =
                    serde_json::to_value(part).map_err(|error| CallError::Encode(error.into()))?;
                append(collected, part);
                Ok(())
            }
        }
    }

    /// Returns the response: all parts, or an empty result if they were already sent.
    ///
    /// # Errors
    /// Fails with -32603 if the parts have different kinds, such as locations and links, which cannot be in one result.
    pub fn finish(self) -> Result<R::Result, ErrorObject> {
        match self.result {
            Parts::Sent { empty, .. } | Parts::Collected(Value::Null, empty) => Ok(empty),
            Parts::Collected(all, _) => serde_json::from_value(all).map_err(|error| {
                let method = <R as Request>::METHOD.as_str();
                tracing::error!(method, %error, "the parts of a result have different kinds; send one kind");
                ErrorObject::internal_error()
            }),
        }
    }
}

/// Merges a part into the result, as the protocol defines: appends the items of an Array, and merges the members of an
/// Object.
fn append(all: &mut Value, part: Value) {
    match (all, part) {
        (Value::Array(all), Value::Array(part)) => all.extend(part),
        (Value::Object(all), Value::Object(part)) => append_members(all, part),
        (all, part) => *all = part,
    }
}

fn append_members(all: &mut Map<String, Value>, part: Map<String, Value>) {
    for (name, value) in part {
        append(all.entry(name).or_insert(Value::Null), value);
    }
}
