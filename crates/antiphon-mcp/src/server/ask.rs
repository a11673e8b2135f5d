//! Asking the user or the model while a request runs.
//!
//! A legacy client is called. A modern client gets the questions as the result of the request, and repeats the request
//! with its answers. Handlers see no difference, except that a handler of a modern request runs again from its start.

use std::time::Duration;

use antiphon::{Context, RawJson};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::context::RequestContext;
use super::era::Era;
use super::error::AskError;
use super::questions::{Unanswered, within_step};
use super::session::Session;
use crate::types::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitResult, ElicitUrlParams, ElicitationCapability, ElicitationSchema, IncludeContext,
    ListRootsResult, Revision, Root, RootsCapability, SamplingCapability, methods,
};

/// The answer of a user to a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user has sent the form.
    Accepted(T),
    /// The user has refused.
    Declined,
    /// The user has closed the form without a decision.
    Cancelled,
}

impl<T> Elicited<T> {
    /// Returns the content of the form; `None` if the user has not sent it.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(content) => Some(content),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// One question to the client, in a context. Created by [`RequestContext::question`].
///
/// A question has a key, which a modern client sees. The keys of the questions of a request must differ, and must be
/// the same each time that the handler runs.
#[derive(Debug)]
pub struct Ask<'a> {
    cx: &'a RequestContext,
    key: Option<String>,
}

impl RequestContext {
    /// Returns a question with this key. [`elicit`](Self::elicit) and the others use the number of the question as its key,
    /// so with them, the handler must ask in the same order each time that it runs.
    pub fn question(&self, key: impl Into<String>) -> Ask<'_> {
        Ask { cx: self, key: Some(key.into()) }
    }

    fn unnamed(&self) -> Ask<'_> {
        Ask { cx: self, key: None }
    }

    /// Asks the user to fill in a form.
    ///
    /// ```
    /// use antiphon_mcp::types::{ElicitFormParams, ElicitationSchema, StringSchema};
    /// use antiphon_mcp::{RequestContext, ToolError};
    ///
    /// async fn greet(cx: RequestContext) -> Result<String, ToolError> {
    ///     let form = ElicitationSchema::new().required("name", StringSchema::new());
    ///     let answer = cx.elicit(ElicitFormParams::new("What is your name?", form)).await?;
    ///     let name = answer.content.as_ref().and_then(|content| content.get("name"));
    ///     Ok(format!("hello {}", name.and_then(|name| name.as_str()).unwrap_or("stranger")))
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails if the client cannot show forms, does not answer, or answers what the form does not allow.
    pub async fn elicit(&self, form: ElicitFormParams) -> Result<ElicitResult, AskError> {
        self.unnamed().elicit(form).await
    }

    /// Asks the user to fill in a form with the fields of a type.
    ///
    /// ```
    /// use antiphon_mcp::{Elicited, RequestContext, ToolError};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Delivery {
    ///     /// The street and the number.
    ///     street: String,
    ///     express: bool,
    /// }
    ///
    /// async fn order(cx: RequestContext) -> Result<String, ToolError> {
    ///     Ok(match cx.elicit_as::<Delivery>("Where shall we deliver?").await? {
    ///         Elicited::Accepted(to) => format!("to {}, express: {}", to.street, to.express),
    ///         Elicited::Declined | Elicited::Cancelled => "not ordered".to_owned(),
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// Like [`elicit`](Self::elicit). Fails too if the type has fields that a form cannot have: a form has texts,
    /// numbers, choices and check boxes.
    pub async fn elicit_as<T>(&self, message: &str) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        self.unnamed().elicit_as(message).await
    }

    /// Asks the user to open a URL, for what must not pass through the client, such as a password.
    ///
    /// The answer says only whether the user agrees to open the URL. [`elicitation_completed`](Self::elicitation_completed)
    /// notifies a client of 2025-11-25 when the user has finished there.
    ///
    /// # Errors
    /// Fails if the client cannot open URLs, or does not answer.
    pub async fn elicit_url(&self, params: ElicitUrlParams) -> Result<ElicitResult, AskError> {
        self.unnamed().elicit_url(params).await
    }

    /// Notifies a client of 2025-11-25 that the user has finished at the URL of this elicitation. Modern clients learn it
    /// when they repeat their request.
    pub async fn elicitation_completed(&self, elicitation_id: &str) {
        let Some(session) = self.session() else { return };
        let params = serde_json::json!({ "elicitationId": elicitation_id });
        let Ok(params) = RawJson::encode(&params) else { return };
        // The user may finish long after the request has ended with the error that names the URL.
        if self.notify(methods::ELICITATION_COMPLETE, &params).await.is_err() {
            let _ = session.link().notify(methods::ELICITATION_COMPLETE, params).await;
        }
    }

    /// Asks the model of the client for a message.
    ///
    /// # Errors
    /// Fails if the client has no model, or does not answer.
    pub async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.unnamed().sample(params).await
    }

    /// Asks for the roots of the client.
    ///
    /// # Errors
    /// Fails if the client has no roots, or does not answer.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.unnamed().roots().await
    }

    /// Runs a step that must run only once, although the handler of a modern request may run several times.
    ///
    /// The result is part of the state of the request, which the client keeps and can read. So it must be small and must
    /// not be secret. The steps of a request need different keys.
    ///
    /// ```
    /// use antiphon_mcp::{RequestContext, ToolError};
    ///
    /// async fn pay(cx: RequestContext) -> Result<String, ToolError> {
    ///     let order: u64 = cx.once("order", async { Ok::<_, ToolError>(7_u64) }).await?;
    ///     let roots = cx.roots().await?;
    ///     Ok(format!("order {order} for {} roots", roots.len()))
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns the error of the step. It runs again in the next round.
    pub async fn once<T, E>(
        &self,
        key: &str,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
    {
        if let Some(result) = self.questions().step(key)
            && let Ok(result) = serde_json::from_str(result.get())
        {
            return Ok(result);
        }
        let result = within_step(key, step).await?;
        if let Ok(encoded) = serde_json::value::to_raw_value(&result) {
            self.questions().finish_step(key.to_owned(), encoded);
        }
        Ok(result)
    }
}

impl Session {
    /// Asks for the roots of the client outside of any request.
    pub(crate) async fn roots(&self, timeout: Duration) -> Result<Vec<Root>, AskError> {
        let (method, params) = (methods::LIST_ROOTS, serde_json::json!({}));
        let answer = call(self, method, &params, None, timeout).await?;
        let answer: ListRootsResult = decode(method, answer.as_str())?;
        Ok(answer.roots)
    }
}

impl Ask<'_> {
    /// Asks the user to fill in a form, like [`RequestContext::elicit`].
    ///
    /// # Errors
    /// Like [`RequestContext::elicit`].
    pub async fn elicit(self, form: ElicitFormParams) -> Result<ElicitResult, AskError> {
        let mode = ElicitationCapability::default().with_form(serde_json::Map::new());
        let required = ClientCapabilities::new().with_elicitation(mode);
        let answer: ElicitResult = self.ask(methods::ELICIT, &form, required).await?;
        check_form(&form.requested_schema, &answer)?;
        Ok(answer)
    }

    /// Asks the user to fill in a form with the fields of a type, like [`RequestContext::elicit_as`].
    ///
    /// # Errors
    /// Like [`RequestContext::elicit_as`].
    pub async fn elicit_as<T>(self, message: &str) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let invalid = |reason: String| AskError::InvalidAnswer { method: methods::ELICIT, reason };
        let schema = super::schema::form::<T>().map_err(|_| AskError::OverLimit {
            method: methods::ELICIT,
            reason: "a form has only texts, numbers, choices and check boxes",
        })?;
        let answer = self.elicit(ElicitFormParams::new(message, schema)).await?;
        Ok(match answer.action {
            ElicitAction::Accept => {
                let content = serde_json::to_value(answer.content.unwrap_or_default());
                let content = content.and_then(serde_json::from_value);
                Elicited::Accepted(content.map_err(|error| invalid(error.to_string()))?)
            }
            ElicitAction::Decline => Elicited::Declined,
            _ => Elicited::Cancelled,
        })
    }

    /// Asks the user to open a URL, like [`RequestContext::elicit_url`].
    ///
    /// # Errors
    /// Like [`RequestContext::elicit_url`].
    pub async fn elicit_url(self, mut params: ElicitUrlParams) -> Result<ElicitResult, AskError> {
        match self.cx.era().is_modern() {
            // The member exists only in 2025-11-25, where it is required.
            true => params.elicitation_id = None,
            false if params.elicitation_id.is_none() => params.elicitation_id = new_id()?,
            false => {}
        }
        let mode = ElicitationCapability::default().with_url(serde_json::Map::new());
        let required = ClientCapabilities::new().with_elicitation(mode);
        self.ask(methods::ELICIT, &params, required).await
    }

    /// Asks the model of the client for a message, like [`RequestContext::sample`].
    ///
    /// # Errors
    /// Like [`RequestContext::sample`].
    pub async fn sample(
        self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        let mut capability = SamplingCapability::default();
        if params.tools.is_some() || params.tool_choice.is_some() {
            capability = capability.with_tools(serde_json::Map::new());
        }
        // Earlier revisions have no such capability.
        let includes = params.include_context.is_some_and(|it| it != IncludeContext::None);
        if includes && self.cx.revision() >= Revision::V2025_11_25 {
            capability = capability.with_context(serde_json::Map::new());
        }
        let required = ClientCapabilities::new().with_sampling(capability);
        self.ask(methods::CREATE_MESSAGE, &params, required).await
    }

    /// Asks for the roots of the client, like [`RequestContext::roots`].
    ///
    /// # Errors
    /// Like [`RequestContext::roots`].
    pub async fn roots(self) -> Result<Vec<Root>, AskError> {
        let required = ClientCapabilities::new().with_roots(RootsCapability::default());
        let params = serde_json::json!({});
        let answer: ListRootsResult = self.ask(methods::LIST_ROOTS, &params, required).await?;
        Ok(answer.roots)
    }

    /// Asks, and decodes the answer.
    async fn ask<T: DeserializeOwned>(
        self,
        method: &'static str,
        params: &impl Serialize,
        required: ClientCapabilities,
    ) -> Result<T, AskError> {
        let is_modern = self.cx.era().is_modern();
        if !super::capability::declares(&self.cx.client_capabilities(), &required) {
            let required = Box::new(required);
            return Err(AskError::Unsupported { method, required, is_modern });
        }
        let answer = match self.cx.era() {
            Era::Modern(_) => self.ask_later(method, params).await?,
            // A legacy task asks on the stream of `tasks/result`.
            Era::Legacy(_) if self.cx.task().is_some() => self.ask_later(method, params).await?,
            Era::Legacy(session) => {
                let (rpc, timeout) = (self.cx.rpc(), self.cx.server().settings().ask_timeout);
                call(session, method, params, Some(&rpc), timeout).await?.as_str().to_owned()
            }
        };
        decode(method, &answer)
    }

    /// Asks with the result of the request, or in a task.
    async fn ask_later(
        self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<String, AskError> {
        let questions = self.cx.questions();
        let key = self.key.unwrap_or_else(|| questions.next_key(method));
        let params: Box<RawValue> = serde_json::value::to_raw_value(params)
            .map_err(|error| AskError::InvalidAnswer { method, reason: error.to_string() })?;
        let reason = "too many questions at once";
        let answer = questions.ask(key, method, params).await;
        match answer {
            Ok(answer) => Ok(answer.get().to_owned()),
            Err(Unanswered::TooMany) => Err(AskError::OverLimit { method, reason }),
            Err(Unanswered::Failed(source)) => Err(AskError::Call { method, source }),
        }
    }
}

fn decode<T: DeserializeOwned>(method: &'static str, answer: &str) -> Result<T, AskError> {
    // An Array would be read as a struct.
    let answer = crate::types::from_object(answer);
    answer.map_err(|error| AskError::InvalidAnswer { method, reason: error.to_string() })
}

/// Creates the id of an elicitation that has none.
fn new_id() -> Result<Option<String>, AskError> {
    let reason = "the system has no random numbers";
    let id = super::random_id();
    id.map(Some).map_err(|_| AskError::OverLimit { method: methods::ELICIT, reason })
}

/// Calls a legacy client.
async fn call(
    session: &Session,
    method: &'static str,
    params: &impl Serialize,
    rpc: Option<&Context>,
    timeout: Duration,
) -> Result<RawJson, AskError> {
    let failed = |source| AskError::Call { method, source };
    let params = RawJson::encode(params)
        .map_err(|error| AskError::InvalidAnswer { method, reason: error.to_string() })?;
    let calling = session.link().call(method, params, rpc);
    match tokio::time::timeout(timeout, calling).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(failed(antiphon::CallError::TimedOut(timeout))),
    }
}

/// Checks the content of a form that the user has sent.
fn check_form(schema: &ElicitationSchema, answer: &ElicitResult) -> Result<(), AskError> {
    if answer.action != ElicitAction::Accept {
        return Ok(());
    }
    let invalid = |reason: String| AskError::InvalidAnswer { method: methods::ELICIT, reason };
    let schema = serde_json::to_value(schema).map_err(|error| invalid(error.to_string()))?;
    let content = answer.content.clone().unwrap_or_default();
    let content = serde_json::to_value(content).map_err(|error| invalid(error.to_string()))?;
    let validator = crate::schema::Validator::new(&schema)
        .map_err(|error| invalid(format!("the form is not valid: {error}")))?;
    validator.check(&content).map_err(|fault| invalid(fault.to_string()))
}
