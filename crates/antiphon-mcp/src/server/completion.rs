//! Completion of the arguments of prompts and of the variables of templates: `completion/complete`.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon::{BoxFuture, Outcome};

use super::context::RequestContext;
use super::error::RequestError;
use super::forwarding::ResultMembers;
use super::offers::short;
use super::reply::{complete, complete_members};
use super::request::invalid_params;
use crate::types::{CompleteParams, CompleteResult, Completion, Reference};

/// Completes the arguments of one prompt, or the variables of one template.
#[derive(Clone)]
pub(crate) enum Completers {
    /// By the name of the argument.
    Own(BTreeMap<String, Completer>),
    /// Another server completes.
    Forwarded(Arc<Forward>),
}

/// Completes one argument.
#[derive(Clone)]
pub(crate) struct Completer(Arc<Complete>);

type Complete =
    dyn Fn(String, BTreeMap<String, String>) -> BoxFuture<'static, Vec<String>> + Send + Sync;
type Forward =
    dyn Fn(CompleteParams, RequestContext) -> BoxFuture<'static, Forwarded> + Send + Sync;
type Forwarded = Result<ResultMembers, RequestError>;

impl Default for Completers {
    fn default() -> Self {
        Self::Own(BTreeMap::new())
    }
}

impl Completers {
    pub(super) fn forwarded<F>(
        forward: impl Fn(CompleteParams, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Forwarded> + Send + 'static,
    {
        Self::Forwarded(Arc::new(move |params, cx| Box::pin(forward(params, cx))))
    }

    /// Adds a completer. From then on, no other server completes.
    pub(super) fn insert(&mut self, argument: &str, completer: Completer) {
        let mut completers = match std::mem::take(self) {
            Self::Own(completers) => completers,
            Self::Forwarded(_) => BTreeMap::new(),
        };
        completers.insert(argument.to_owned(), completer);
        *self = Self::Own(completers);
    }

    /// Whether no argument can be completed.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Own(completers) if completers.is_empty())
    }

    /// Completes an argument. One that has no completer has no values.
    pub(crate) async fn complete(&self, cx: &RequestContext, params: CompleteParams) -> Outcome {
        let completers = match self {
            Self::Own(completers) => completers,
            Self::Forwarded(forward) => {
                let members = forward(params, cx.clone()).await;
                return complete_members(cx, members.map_err(|RequestError(error)| error)?);
            }
        };
        let known = params.context.and_then(|context| context.arguments).unwrap_or_default();
        let completion = match completers.get(&params.argument.name) {
            Some(Completer(completer)) => {
                Completion::new(completer(params.argument.value, known).await)
            }
            None => Completion::default(),
        };
        complete(cx, CompleteResult::new(completion))
    }
}

impl Completer {
    pub(crate) fn new<F>(
        complete: impl Fn(String, BTreeMap<String, String>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        Self(Arc::new(move |typed, known| Box::pin(complete(typed, known))))
    }
}

/// Serves `completion/complete`.
pub(super) async fn complete_argument(cx: RequestContext, params: CompleteParams) -> Outcome {
    let server = &cx.server().state;
    match &params.reference {
        Reference::Prompt { name, .. } => {
            let prompt = server.prompts.get(name);
            let prompt = prompt.ok_or_else(|| {
                invalid_params("ref.name", &format!("unknown prompt `{}`", short(name)))
            })?;
            prompt.completers().complete(&cx, params).await
        }
        Reference::Resource { uri } => match server.templates.get(uri) {
            Some(template) => template.completers().complete(&cx, params).await,
            None if server.resources.get(uri).is_some() => {
                complete(&cx, CompleteResult::new(Completion::default()))
            }
            None => {
                let reason = format!("unknown resource template `{}`", short(uri));
                Err(invalid_params("ref.uri", &reason))
            }
        },
    }
}
