//! Completion of the arguments of prompts and of the variables of templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon::BoxFuture;

use crate::types::Completion;

/// Completes one argument.
#[derive(Clone)]
pub(crate) struct Completer(Arc<Complete>);

type Complete =
    dyn Fn(String, BTreeMap<String, String>) -> BoxFuture<'static, Vec<String>> + Send + Sync;

impl Completer {
    pub(crate) fn new<F>(
        complete: impl Fn(String, BTreeMap<String, String>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        Self(Arc::new(move |typed, known| Box::pin(complete(typed, known))))
    }

    /// Completes what the user has typed. `known` are the other arguments.
    pub(crate) async fn complete(
        &self,
        typed: String,
        known: BTreeMap<String, String>,
    ) -> Completion {
        Completion::new((self.0)(typed, known).await)
    }
}
