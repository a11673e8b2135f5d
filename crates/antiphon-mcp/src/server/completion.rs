//! Completion of the arguments of prompts and of the variables of templates: `completion/complete`.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon::{BoxFuture, Outcome};

use super::context::RequestContext;
use super::offers::short;
use super::reply::complete;
use super::request::invalid_params;
use crate::types::{CompleteParams, CompleteResult, Completion, Reference};

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

/// Serves `completion/complete`.
pub(super) async fn complete_argument(cx: RequestContext, params: CompleteParams) -> Outcome {
    let CompleteParams { reference, argument, context, .. } = params;
    let server = &cx.server().state;
    let completer = match &reference {
        Reference::Prompt { name, .. } => {
            let prompt = server.prompts.get(name);
            let prompt = prompt.ok_or_else(|| {
                invalid_params("ref.name", &format!("unknown prompt `{}`", short(name)))
            })?;
            prompt.completer(&argument.name).cloned()
        }
        Reference::Resource { uri } => {
            let template = server.templates.get(uri);
            if template.is_none() && server.resources.get(uri).is_none() {
                let reason = format!("unknown resource template `{}`", short(uri));
                return Err(invalid_params("ref.uri", &reason));
            }
            template.and_then(|template| template.completer(&argument.name).cloned())
        }
    };
    let known = context.and_then(|context| context.arguments).unwrap_or_default();
    let completion = match completer {
        Some(completer) => completer.complete(argument.value, known).await,
        None => Completion::default(),
    };
    complete(&cx, CompleteResult::new(completion))
}
