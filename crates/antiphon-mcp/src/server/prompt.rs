//! Prompts: their descriptions and their handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use antiphon::{BoxFuture, ErrorObject};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::completion::{Completer, Completers};
use super::context::RequestContext;
use super::error::RequestError;
use super::forwarding::{Reply, ResultMembers};
use super::request::invalid_params;
use super::schema;
use crate::types::{GetPromptResult, Icon, Prompt, PromptArgument, PromptMessage};

/// A prompt of a server: its description and its handler.
///
/// ```
/// use antiphon_mcp::{RequestContext, RequestError, ServerPrompt};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review {
///     /// The code.
///     code: String,
///     language: Option<String>,
/// }
///
/// let review = ServerPrompt::new("review", |it: Review, _cx: RequestContext| async move {
///     Ok::<_, RequestError>(format!("Review this {} code:\n{}", it.language.unwrap_or_default(), it.code))
/// })
/// .description("Asks for a review.")
/// .complete("language", |typed, _known| async move {
///     ["go", "rust"].into_iter().filter(|it| it.starts_with(&typed)).map(str::to_owned).collect()
/// });
/// assert_eq!(review.prompt().arguments.as_ref().unwrap().len(), 2);
/// ```
#[derive(Clone)]
pub struct ServerPrompt {
    prompt: Prompt,
    handler: Arc<PromptHandler>,
    pub(super) completers: Completers,
}

type PromptHandler = dyn Fn(BTreeMap<String, String>, RequestContext) -> Prompting + Send + Sync;
type Prompting = BoxFuture<'static, Result<Reply<GetPromptResult>, ErrorObject>>;

/// The messages of a prompt: what its handler may return.
///
/// A text of the user, or messages. A [`GetPromptResult`] for everything else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the result of a prompt",
    label = "not the messages of a prompt",
    note = "a prompt returns a text, a `PromptMessage`, a list of them, a `GetPromptResult`, or a `Result` of one of \
            these; its error is a `RequestError`, an `std::error::Error` or a text"
)]
pub trait IntoPromptResult {
    /// Converts the messages.
    fn into_prompt_result(self) -> GetPromptResult;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> GetPromptResult {
        self
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> GetPromptResult {
        GetPromptResult::new(self)
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> GetPromptResult {
        GetPromptResult::new(vec![self])
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> GetPromptResult {
        PromptMessage::user(crate::types::ContentBlock::text(self)).into_prompt_result()
    }
}

impl IntoPromptResult for &str {
    fn into_prompt_result(self) -> GetPromptResult {
        self.to_owned().into_prompt_result()
    }
}

impl ServerPrompt {
    /// Creates a prompt. Its arguments are the fields of the type that the handler takes: a struct of texts, or `()`.
    pub fn new<A, R, F>(
        name: impl Into<String>,
        handler: impl Fn(A, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: IntoPromptResult,
        F: Future<Output = Result<R, RequestError>> + Send + 'static,
    {
        let mut prompt = Prompt::new(name);
        let arguments = arguments_of(&schema::arguments::<A>());
        prompt.arguments = (!arguments.is_empty()).then_some(arguments);
        Self::dynamic(prompt, move |given, cx| {
            let decoded = decode::<A>(&given);
            let running = decoded.map(|arguments| handler(arguments, cx));
            async move { Ok(running?.await?.into_prompt_result()) }
        })
    }

    /// Creates a prompt whose arguments are known only at run time.
    pub fn dynamic<F>(
        prompt: Prompt,
        handler: impl Fn(BTreeMap<String, String>, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<GetPromptResult, RequestError>> + Send + 'static,
    {
        let handler: Arc<PromptHandler> = Arc::new(move |given, cx| {
            let running = handler(given, cx);
            Box::pin(async move {
                running.await.map(Reply::Result).map_err(|RequestError(error)| error)
            })
        });
        Self { prompt, handler, completers: Completers::default() }
    }

    /// Creates a prompt whose arguments are checked, and whose messages are made, by another server.
    pub(crate) fn forwarded<F>(
        prompt: Prompt,
        handler: impl Fn(BTreeMap<String, String>, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        let handler: Arc<PromptHandler> = Arc::new(move |given, cx| {
            let running = handler(given, cx);
            Box::pin(async move {
                running.await.map(Reply::Members).map_err(|RequestError(error)| error)
            })
        });
        Self { prompt, handler, completers: Completers::default() }
    }

    /// The description, as clients get it.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// The arguments, for a caller that knows their order.
    #[cfg(feature = "macros")]
    pub(crate) fn arguments_mut(&mut self) -> Option<&mut Vec<PromptArgument>> {
        self.prompt.arguments.as_mut()
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// Sets what the prompt is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.prompt.description = Some(description.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.prompt.icons.get_or_insert_default().push(icon);
        self
    }

    /// Completes an argument. The closure gets what the user has typed, and the arguments that are known already.
    #[must_use]
    pub fn complete<F>(
        mut self,
        argument: &str,
        complete: impl Fn(String, BTreeMap<String, String>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument, Completer::new(complete));
        self
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.completers
    }

    /// Checks the arguments and calls the handler.
    pub(crate) fn get(
        &self,
        given: BTreeMap<String, String>,
        cx: RequestContext,
    ) -> Result<Prompting, ErrorObject> {
        let declared = self.prompt.arguments.iter().flatten();
        let mut required = declared.filter(|argument| argument.required == Some(true));
        match required.find(|argument| !given.contains_key(&argument.name)) {
            Some(missing) => {
                let reason = format!("missing argument `{}`", missing.name);
                Err(invalid_params("arguments", &reason))
            }
            None => Ok((self.handler)(given, cx)),
        }
    }
}

/// The arguments of a prompt from the schema of their type.
fn arguments_of(schema: &crate::types::JsonObject) -> Vec<PromptArgument> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let argument = |(name, property): (&String, &Value)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut argument = PromptArgument::new(name).with_required(is_required(name));
        argument.description = text("description");
        argument.title = text("title");
        argument
    };
    properties.iter().map(argument).collect()
}

/// Decodes the arguments of a prompt, which are texts. `()` takes all.
fn decode<A: DeserializeOwned>(given: &BTreeMap<String, String>) -> Result<A, RequestError> {
    if std::mem::size_of::<A>() == 0
        && let Ok(unit) = serde_json::from_value(Value::Null)
    {
        return Ok(unit);
    }
    super::uri_variables::variables(given.clone())
        .map_err(|reason| RequestError(invalid_params("arguments", &reason)))
}

impl fmt::Debug for ServerPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerPrompt").field("prompt", &self.prompt).finish_non_exhaustive()
    }
}
