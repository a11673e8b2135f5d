//! The scenario that the suite wants to run.

use std::env;

use antiphon_mcp::types::Revision;
use serde_json::Value;

use super::Failure;

/// The scenario that the suite wants to run.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) revision: Revision,
    /// The URL of the server.
    pub(crate) url: String,
    /// What the suite knows and a server would not tell, such as credentials. An Object or null.
    pub(crate) context: Value,
}

impl Scenario {
    /// Reads the scenario from the last argument and the environment.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let url = env::args().skip(1).last().ok_or("usage: everything_client URL")?;
        let date = variable("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        let revision = Revision::parse(&date).ok_or(format!("unknown revision {date:?}"))?;
        let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text)?,
            Err(_) => Value::Null,
        };
        Ok(Self { name: variable("MCP_CONFORMANCE_SCENARIO")?, revision, url, context })
    }

    /// The tool to call while another call waits for input: the state of that call must not leak into it.
    pub(crate) fn interlude(&self) -> Option<&'static str> {
        (self.name == "sep-2322-client-request-state").then_some("test_mrtr_unrelated")
    }

    /// Whether all arguments match the schema of their tool. The suite gives some that do not.
    pub(crate) fn has_valid_arguments(&self) -> bool {
        self.name != "http-custom-headers"
    }

    /// A text of the context.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.context[name].as_str()
    }

    /// A text that the context must have.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Failure> {
        self.text(name).ok_or_else(|| format!("the context has no text {name:?}").into())
    }
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}
