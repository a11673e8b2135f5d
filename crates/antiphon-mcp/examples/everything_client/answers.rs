//! What a user without wishes answers: the defaults of a form.

use antiphon_mcp::types::{
    ElicitFormParams, ElicitParams, ElicitResult, JsonObject, PrimitiveSchema,
};
use serde_json::Value;

/// Accepts a form, and declines a URL.
pub(crate) fn to_question(question: &ElicitParams) -> ElicitResult {
    match question {
        ElicitParams::Form(form) => ElicitResult::accept(filled_in(form)),
        _ => ElicitResult::decline(),
    }
}

/// The defaults of the fields; a yes where there is none.
fn filled_in(form: &ElicitFormParams) -> JsonObject {
    let mut values = form.requested_schema.defaults();
    for (name, field) in &form.requested_schema.properties {
        if matches!(field, PrimitiveSchema::Boolean(_)) {
            values.entry(name).or_insert(Value::Bool(true));
        }
    }
    values
}
