//! Lints in generated code: what the user allows or expects holds in all of it, and it has no warnings of its own.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]

use antiphon_mcp::{RequestContext, RequestError, ToolError};
use serde_json::json;

use crate::requests::TestClient;

/// The use of the type in its own derives is a warning too.
#[allow(deprecated)]
pub mod old {
    /// A type whose use is a warning.
    #[deprecated]
    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    pub struct Old {
        /// A number.
        pub number: u8,
    }
}

/// A service with every kind of method.
#[derive(Debug)]
pub struct Linted;

#[expect(
    clippy::unused_self,
    clippy::unused_async,
    clippy::missing_const_for_fn,
    reason = "a test"
)]
#[antiphon_mcp::server(name = "linted", version = "1")]
impl Linted {
    /// Documented.
    #[tool]
    pub fn public(&self) {}

    #[tool]
    #[expect(non_snake_case)]
    fn getOld(&self, userId: u8) -> u8 {
        userId
    }

    #[tool]
    #[expect(deprecated)]
    fn old(&self, old: old::Old) -> Result<u8, ToolError> {
        old.number.checked_add(1).ok_or_else(|| ToolError::new("too old"))
    }

    #[tool]
    #[deprecated]
    async fn deprecated(&self, #[expect(unused_variables)] number: u8, cx: RequestContext) {
        drop(cx);
    }

    #[resource(uri = "a://b")]
    async fn resource(&self) -> Result<String, RequestError> {
        Ok(String::new())
    }

    #[resource(template = "a://{b}")]
    fn template(&self, b: String) -> String {
        b
    }

    #[prompt]
    fn prompt(&self, a: String) -> String {
        a
    }

    #[complete(prompt = "prompt", argument = "a")]
    fn complete(&self, typed: &str) -> Vec<String> {
        vec![typed.to_owned()]
    }

    #[complete(template = "a://{b}", variable = "b")]
    async fn complete_by_value(&self, typed: String) -> Vec<String> {
        vec![typed]
    }
}

#[tokio::test]
async fn lints_hold_in_generated_code() {
    let client = TestClient::of(Linted);
    assert_eq!(client.text("getOld", json!({ "userId": 3 })).await, "3");
    assert_eq!(client.text("old", json!({ "old": { "number": 4 } })).await, "5");
}
