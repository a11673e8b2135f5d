//! The tools that a server has listed, and checks against their schemas.
//!
//! They are bounded in number and bytes: the lists come from the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

use super::error::McpError;
use super::inbox::locked;
use crate::param_headers::ParamHeaders;
use crate::schema::Validator;
use crate::types::{CallToolResult, JsonObject, Tool};

/// The most tools that are remembered.
const MAX_TOOLS: usize = 10_000;
/// The most bytes of the lists that they come from. One list always fits.
const MAX_BYTES: usize = 64 << 20;
/// The most faults of a value in an error.
const MAX_FAULTS: usize = 3;

/// The tools that the server has listed, by name.
#[derive(Default)]
pub(super) struct KnownTools(Mutex<Known>);

#[derive(Default)]
struct Known {
    tools: HashMap<String, Arc<KnownTool>>,
    /// The bytes of the lists that they come from.
    bytes: usize,
}

/// A tool, and its schemas once they are needed.
pub(super) struct KnownTool {
    pub(super) tool: Tool,
    /// The arguments that are repeated in headers.
    pub(super) headers: ParamHeaders,
    input: OnceLock<Option<Validator>>,
    output: OnceLock<Option<Validator>>,
}

impl KnownTools {
    pub(super) fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        locked(&self.0).tools.get(name).cloned()
    }

    /// Remembers tools of a list of this size. A tool that has not changed keeps its compiled schemas.
    pub(super) fn learn(&self, tools: &[Tool], size: usize, uses_headers: bool) {
        let mut known = locked(&self.0);
        let is_known = |known: &Known, tool: &Tool| {
            known.tools.get(&tool.name).is_some_and(|known| known.tool == *tool)
        };
        if tools.iter().all(|tool| is_known(&known, tool)) {
            return;
        }
        if known.tools.len() + tools.len() > MAX_TOOLS || known.bytes + size > MAX_BYTES {
            *known = Known::default();
        }
        known.bytes += size;
        for tool in tools.iter().take(MAX_TOOLS) {
            if is_known(&known, tool) {
                continue;
            }
            let headers = ParamHeaders::of(&tool.input_schema).ok();
            let headers = headers.filter(|_| uses_headers).unwrap_or_default();
            let (input, output) = (OnceLock::new(), OnceLock::new());
            let learned = KnownTool { tool: tool.clone(), headers, input, output };
            known.tools.insert(tool.name.clone(), Arc::new(learned));
        }
    }
}

impl KnownTool {
    pub(super) fn check_arguments(&self, arguments: &Value) -> Result<(), McpError> {
        let input = compiled(&self.input, &self.tool, Some(&self.tool.input_schema));
        let checked = input.map_or(Ok(()), |schema| faults(schema, arguments));
        let tool = self.tool.name.clone();
        checked.map_err(|reason| McpError::InvalidArguments { tool, reason })
    }

    /// Checks the structured result of a tool that has succeeded.
    pub(super) fn check_result(&self, result: &CallToolResult) -> Result<(), McpError> {
        let output = compiled(&self.output, &self.tool, self.tool.output_schema.as_ref());
        let Some(schema) = output.filter(|_| !result.failed()) else { return Ok(()) };
        let checked = match &result.structured_content {
            Some(value) => faults(schema, value),
            None => Err("the result has no structured content".to_owned()),
        };
        let tool = self.tool.name.clone();
        checked.map_err(|reason| McpError::InvalidResult { tool, reason })
    }
}

/// Checks a value. The error names the first faults.
fn faults(schema: &Validator, value: &Value) -> Result<(), String> {
    let faults: Vec<_> = schema.faults(value).take(MAX_FAULTS).map(|it| it.to_string()).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// A schema that cannot be compiled checks nothing: the server checks the arguments too.
fn compiled<'a>(
    cell: &'a OnceLock<Option<Validator>>,
    tool: &Tool,
    schema: Option<&JsonObject>,
) -> Option<&'a Validator> {
    let compile = || {
        let compiled = Validator::new(&Value::Object(schema?.clone()));
        let warn = |error: &String| {
            tracing::warn!(tool = tool.name, error, "the schema of a tool is unusable");
        };
        compiled.inspect_err(warn).ok()
    };
    cell.get_or_init(compile).as_ref()
}
