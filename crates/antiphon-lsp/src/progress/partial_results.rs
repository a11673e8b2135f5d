//! The result of a request in parts, as a server sends it.

use antiphon::{CallError, ErrorObject};
use serde_json::{Map, Value};

use super::report_line::{METHOD, Params};
use super::{PartialResultParams, ResultOf};
use crate::Editor;
use crate::types::{ProgressToken, Request, RequestWithPartialResults};

/// The result of a request, sent in parts if the editor wants them, and collected otherwise. Created by
/// [`Editor::partial_results`].
#[derive(Debug)]
pub struct PartialResults<R: RequestWithPartialResults> {
    result: Parts<R::Result>,
}

#[derive(Debug)]
enum Parts<T> {
    /// The editor gets each part at once, and this as the result.
    Sent { editor: Editor, token: ProgressToken, empty: T },
    /// The parts so far, as one value.
    Collected(Value, T),
}

impl<R: RequestWithPartialResults> PartialResults<R> {
    pub(crate) fn new<P: PartialResultParams<Request = R>>(editor: &Editor, params: &P) -> Self {
        let empty: ResultOf<P> = P::empty_result();
        let result = match params.partial_result_token() {
            Some(token) => Parts::Sent { editor: editor.clone(), token: token.clone(), empty },
            None => Parts::Collected(Value::Null, empty),
        };
        Self { result }
    }

    /// Whether the editor gets the parts at once. If not, there is no gain in small parts.
    pub fn is_streaming(&self) -> bool {
        matches!(self.result, Parts::Sent { .. })
    }

    /// Adds a part to the result. Waits while the write queue is full.
    pub async fn send(&mut self, part: R::PartialResult) -> Result<(), CallError> {
        match &mut self.result {
            Parts::Sent { editor, token, .. } => {
                editor.notify(METHOD, Params { token, value: part }).await
            }
            Parts::Collected(collected, _) => {
                let part =
                    serde_json::to_value(part).map_err(|error| CallError::Encode(error.into()))?;
                append(collected, part);
                Ok(())
            }
        }
    }

    /// Returns the response: all parts, or an empty result if the editor has them already.
    ///
    /// # Errors
    /// Fails with -32603 if the parts are of different kinds, such as locations and links, so that no result has both.
    pub fn finish(self) -> Result<R::Result, ErrorObject> {
        match self.result {
            Parts::Sent { empty, .. } | Parts::Collected(Value::Null, empty) => Ok(empty),
            Parts::Collected(all, _) => serde_json::from_value(all).map_err(|error| {
                let method = <R as Request>::METHOD.as_str();
                tracing::error!(method, %error, "the parts do not make one result");
                ErrorObject::internal_error()
            }),
        }
    }
}

/// Appends a part as the protocol says: the items of an Array follow the others, and so do those of each member of
/// an Object.
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
