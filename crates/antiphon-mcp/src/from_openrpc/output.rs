//! The result of a method as the result of a tool.

use std::sync::Arc;

use antiphon::openrpc::Method;
use antiphon::{CallError, ErrorChain, ErrorObject, RawJson};
use serde_json::Value;

use super::schemas::Schemas;
use crate::schema::Validator;
use crate::types::JsonObject;
use crate::{ToolError, ToolOutput};

/// The schema of the results of a tool, and the check of each result.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) schema: JsonObject,
    validator: Arc<Validator>,
}

impl Output {
    /// The schema of the result, if it is always an Object: other results are not structured for older clients.
    pub(super) fn of(method: &Method, root: &Value) -> Result<Option<Self>, String> {
        let Some(result) = &method.result else { return Ok(None) };
        let mut schemas = Schemas::new(root);
        let Some(mut schema) = schemas.convert_object(&result.schema)? else { return Ok(None) };
        let definitions = schemas.definitions()?;
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), definitions.into());
        }
        let validator = Arc::new(Validator::new(&Value::Object(schema.clone()))?);
        Ok(Some(Self { schema, validator }))
    }

    /// Checks a result: clients refuse one that does not match the schema.
    fn check(&self, result: &RawJson) -> Result<(), ToolError> {
        let value = result.decode()?;
        self.validator.check(&value).map_err(|fault| {
            ToolError::new(format!(
                "the call has succeeded, but its result does not match the description of the service: {fault}\n\
                 result: {result}"
            ))
        })
    }
}

/// Converts the result of a call.
pub(super) fn of_call(
    outcome: Result<RawJson, CallError>,
    schema: Option<&Output>,
) -> Result<ToolOutput, ToolError> {
    let result = outcome.map_err(|error| failure(&error))?;
    if let Some(schema) = schema {
        schema.check(&result)?;
    }
    Ok(ToolOutput::json(result))
}

/// The failure of a call, for the model: it may correct its arguments, or try again.
pub(super) fn failure(error: &CallError) -> ToolError {
    match error {
        CallError::Rpc(error) => ToolError::new(error_text(error)),
        local => {
            let effect = match local.may_have_run() {
                true => "the service may have executed the call",
                false => "the service has not executed the call",
            };
            ToolError::new(format!("the call failed: {}; {effect}", ErrorChain(local)))
        }
    }
}

/// The code, the message and the data of an error of the service.
pub(super) fn error_text(error: &ErrorObject) -> String {
    let text = format!("error {}: {}", error.code, error.message);
    match &error.data {
        Some(data) => format!("{text}\ndata: {data}"),
        None => text,
    }
}
