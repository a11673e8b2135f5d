//! Params held against the schemas of their description, before a method is entered.
//!
//! Types alone let pass what a schema forbids: a range, a pattern, a length. It costs a tree of the
//! params, so it is done only where it is asked for.

use std::sync::Arc;

use super::check::{Check, SchemaError};
use crate::params::invalid;
use crate::router::{Look, Router};

impl Router {
    /// Checks the params of every method that is described by now against their schemas. What does not
    /// fit is answered with -32602, and its `data` say where it is wrong and why.
    ///
    /// Fails where a schema of one's own is none.
    ///
    /// ```
    /// use antiphon::openrpc::Description;
    /// use antiphon::{Context, Responder, Router, schemars::JsonSchema};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Page { #[schemars(range(max = 100))] limit: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new()
    ///     .method("page", |p: Page, _cx: Context| async move { Ok(p.limit) })
    ///     .describe("page", Description::method::<Page, u32>())
    ///     .check_params()?;
    /// let request = r#"{"jsonrpc":"2.0","method":"page","params":{"limit":1000},"id":1}"#;
    /// let answer = Responder::new(router).answer(request).await.unwrap();
    /// assert!(std::str::from_utf8(&answer)?.contains(r#""path":"limit""#));
    /// # Ok(()) }
    /// ```
    pub fn check_params(mut self) -> Result<Self, SchemaError> {
        let (methods, components) = self.described();
        let called: Vec<_> = self.descriptions.iter().map(|it| it.called.clone()).collect();
        for (method, called) in methods.iter().zip(called) {
            let check = Check::new(method, &components)?;
            let look: Look = Arc::new(move |params| match params {
                Some(params) => {
                    check.look(params).map_err(|fault| invalid(&fault.path, &fault.reason))
                }
                None => Ok(()),
            });
            let kind = called.topic().and_then(|topic| topic.kind.as_deref());
            self.guard(called.name(), kind, look.clone());
            called.aliases().iter().for_each(|name| self.guard(name, None, look.clone()));
        }
        Ok(self)
    }
}
