//! Lints in generated code: what the user allows or expects in a contract holds in all of it.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]

use antiphon::{Client, ErrorObject, RpcError};
use serde_json::json;

/// A type whose use is a warning.
#[deprecated]
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Old;

/// Lints of the whole contract.
#[antiphon::rpc(params = "by_position")]
#[expect(non_snake_case, missing_docs, deprecated)]
pub trait Whole {
    async fn getOld(&self, userId: Option<u32>, old: Old) -> Result<Old, ErrorObject>;

    async fn optional(&self, a: Option<u32>, b: Option<u32>) -> Result<[u32; 2], ErrorObject> {
        Ok([a.unwrap_or(7), b.unwrap_or(8)])
    }
}

/// Lints and conditions of each method. The use of the contract by the generated code is no warning.
#[deprecated]
#[antiphon::rpc]
pub trait Each {
    /// A method that does not exist.
    #[method(idempotent)]
    #[cfg_attr(all(), cfg(any()), doc = "Never.")]
    async fn removed(&self, a: Missing) -> Result<Missing, ErrorObject>;

    /// A method that exists.
    ///
    /// # Errors
    /// Never.
    #[method(idempotent)]
    #[cfg_attr(any(), cfg(any()))]
    fn kept(&self) -> Result<u32, ErrorObject> {
        Ok(1)
    }

    /// A lint under a condition.
    #[cfg_attr(all(), expect(non_snake_case))]
    async fn Upper(&self, A: u8) -> Result<u8, ErrorObject>;

    /// A lint with a reason.
    #[expect(clippy::too_many_arguments, reason = "a test")]
    async fn many(
        &self,
        a: u8,
        b: u8,
        c: u8,
        d: u8,
        e: u8,
        f: u8,
        g: u8,
        h: u8,
    ) -> Result<u8, ErrorObject>;
}

struct Service;

#[allow(non_snake_case, deprecated)]
impl Whole for Service {
    async fn getOld(&self, _userId: Option<u32>, old: Old) -> Result<Old, ErrorObject> {
        Ok(old)
    }
}

#[allow(non_snake_case, deprecated, clippy::many_single_char_names)]
impl Each for Service {
    async fn Upper(&self, A: u8) -> Result<u8, ErrorObject> {
        Ok(A)
    }

    async fn many(
        &self,
        a: u8,
        b: u8,
        c: u8,
        d: u8,
        e: u8,
        f: u8,
        g: u8,
        h: u8,
    ) -> Result<u8, ErrorObject> {
        Ok(a + b + c + d + e + f + g + h)
    }
}

#[tokio::test]
#[allow(deprecated)]
async fn a_method_in_a_conditional_cfg_is_removed_from_both_sides() {
    assert_eq!(EachClient::IDEMPOTENT, ["kept"]);
    let router = Each::into_router(Service);
    assert!(router.names().all(|name| name != "removed"));
    assert_eq!(EachClient::new(Client::in_process(router)).kept().await.unwrap(), 1);
}

/// A case with data of each shape, and braces in the text of a message.
#[derive(Debug, PartialEq, Eq, RpcError)]
pub enum Failure {
    /// One value.
    #[rpc(code = 1, message = "{{a}} and }}{{")]
    One(u32),
    /// An array.
    #[rpc(code = 2, message = "two")]
    Two(u32, Option<u32>),
    /// An object.
    #[rpc(code = 3, message = "three")]
    Three {
        /// A member.
        a: u32,
    },
}

#[test]
fn a_message_has_braces_if_they_are_doubled() {
    let error = ErrorObject::from(Failure::One(5));
    assert_eq!(error.message, "{a} and }{");
}

#[test]
fn the_data_of_each_shape_is_sent() {
    let data = |failure| serde_json::to_value(ErrorObject::from(failure)).unwrap()["data"].clone();
    assert_eq!(data(Failure::One(1)), json!(1));
    assert_eq!(data(Failure::Two(1, None)), json!([1, null]));
    assert_eq!(data(Failure::Three { a: 1 }), json!({"a": 1}));
}

#[tokio::test]
async fn only_trailing_absent_params_are_left_out() {
    let client = WholeClient::in_process(Service);
    assert_eq!(client.optional(None, None).await.unwrap(), [7, 8]);
    assert_eq!(client.optional(Some(1), None).await.unwrap(), [1, 8]);
    assert_eq!(client.optional(None, Some(2)).await.unwrap(), [7, 2]);
}
