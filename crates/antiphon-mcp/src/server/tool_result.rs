//! What the handler of a tool may return, and its form on the wire.

use std::borrow::Cow;

use antiphon::{Outcome, RawJson};
use schemars::JsonSchema;
use serde::Serialize;

use super::context::RequestContext;
use super::error::ToolError;
use super::forwarding::ResultMembers;
use super::reply::{self, StructuredResult};
use super::schema;
use crate::types::{CallToolResult, ContentBlock, JsonObject};

/// The result of a tool: what its handler may return.
///
/// A text, a number, content, or a [`Structured`] value. A [`CallToolResult`] for everything else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the result of a tool",
    label = "not the result of a tool",
    note = "a tool returns a text, a number, content, `Structured(value)` of a type with `Serialize` and `JsonSchema`, \
            or a `Result` of one of these; its error is a `ToolError`, an `std::error::Error` or a text"
)]
pub trait IntoToolResult {
    /// The schema of the structured result; `None` if there is none.
    fn output_schema() -> Option<JsonObject> {
        None
    }

    /// Converts the result.
    ///
    /// # Errors
    /// Fails if the value cannot be expressed as JSON.
    fn into_tool_result(self) -> Result<ToolOutput, ToolError>;
}

/// The result of a tool in the form that is sent.
#[derive(Debug)]
pub struct ToolOutput(Output);

#[derive(Debug)]
enum Output {
    Result(Box<CallToolResult>),
    Structured(RawJson),
    /// The members of a result of another server.
    Members(ResultMembers),
}

impl ToolOutput {
    /// Passes the result of another server on.
    pub(crate) fn members(members: ResultMembers) -> Self {
        Self(Output::Members(members))
    }

    /// Creates the result of a tool from JSON, which is sent byte for byte. It is a structured result, with its text for
    /// models. Before 2026-07-28, only an Object can be structured, so clients get other values as text. A String is
    /// always text.
    pub fn json(value: RawJson) -> Self {
        match value.as_str().starts_with('"') {
            true => reply::as_text(&value).into(),
            false => Self(Output::Structured(value)),
        }
    }

    fn structured(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(Self(Output::Structured(RawJson::encode(value)?)))
    }

    /// Encodes the result for the client of this request.
    pub(crate) fn encode(self, cx: &RequestContext) -> Outcome {
        match self.0 {
            Output::Result(result) => reply::complete(cx, *result),
            Output::Structured(value) if reply::may_be_structured(cx, &value) => {
                reply::complete_value(cx, &StructuredResult(value))
            }
            Output::Structured(value) => reply::complete(cx, reply::as_text(&value)),
            Output::Members(members) => reply::complete_members(cx, members),
        }
    }
}

impl From<CallToolResult> for ToolOutput {
    fn from(result: CallToolResult) -> Self {
        Self(Output::Result(Box::new(result)))
    }
}

/// A structured result: programs get the value, models its JSON as text. The tool declares the schema of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn output_schema() -> Option<JsonObject> {
        // Before 2026-07-28 the schema of a result must be that of an Object.
        Some(schema::output::<T>()).filter(|schema| schema.get("type") == Some(&"object".into()))
    }

    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::structured(&self.0)
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolResult for ToolOutput {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        Ok(CallToolResult::new(self).into())
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        Ok(CallToolResult::new(Vec::new()).into())
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        Ok(CallToolResult::text(self).into())
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        self.to_owned().into_tool_result()
    }
}

/// Values that are sent as their text.
macro_rules! texts {
    ($($ty:ty),*) => {
        $(
            impl IntoToolResult for $ty {
                fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
                    self.to_string().into_tool_result()
                }
            }
        )*
    };
}

texts! {
    Cow<'_, str>, bool, char, f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
}

/// `None` is a result without content. It has no schema: a value that is absent would not match it.
impl<T: IntoToolResult> IntoToolResult for Option<T> {
    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        match self {
            Some(value) => value.into_tool_result(),
            None => ().into_tool_result(),
        }
    }
}

impl<T: IntoToolResult> IntoToolResult for Result<T, ToolError> {
    fn output_schema() -> Option<JsonObject> {
        T::output_schema()
    }

    fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        self?.into_tool_result()
    }
}
