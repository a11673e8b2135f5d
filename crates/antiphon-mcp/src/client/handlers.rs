//! What the application does for servers: asks its user, asks its model, lists its roots.
//!
//! Legacy servers send requests, modern servers return input requests. Both reach the same handlers.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon::{BoxFuture, ErrorObject, Outcome, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::inbox::ServerNotification;
use crate::schema::Validator;
use crate::types::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams,
    ElicitResult, ElicitationCapability, ElicitationSchema, EmptyResult, InputRequest,
    InputResponse, JsonObject, ListRootsResult, LoggingMessageParams, Root, RootsCapability,
    SamplingCapability, from_object, methods,
};

/// A handler with its type erased.
pub(super) type Answer<P, R> =
    Arc<dyn Fn(P) -> BoxFuture<'static, Result<R, ErrorObject>> + Send + Sync>;

/// Erases the type of a handler.
pub(super) fn erased<P, R, F, Fut>(handler: F) -> Answer<P, R>
where
    P: 'static,
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ErrorObject>> + Send + 'static,
{
    Arc::new(move |params| Box::pin(handler(params)))
}

/// Receives something, and returns at once.
pub(super) type Receive<T> = Arc<dyn Fn(T) + Send + Sync>;

/// The handlers of an application.
#[derive(Default)]
pub(super) struct Handlers {
    pub(super) elicit_form: Option<Answer<ElicitParams, ElicitResult>>,
    pub(super) elicit_url: Option<Answer<ElicitParams, ElicitResult>>,
    pub(super) sample: Option<Answer<CreateMessageParams, CreateMessageResult>>,
    pub(super) samples_with_tools: bool,
    /// Whether the answers of users are sent as they are.
    pub(super) skips_validation: bool,
    pub(super) roots: Mutex<Option<Vec<Root>>>,
    /// Asks for the roots each time, instead of the fixed ones.
    pub(super) ask_roots: Option<Answer<(), Vec<Root>>>,
    pub(super) log: Option<Receive<LoggingMessageParams>>,
    pub(super) notified: Option<Receive<ServerNotification>>,
}

impl Handlers {
    /// The capabilities that these handlers provide, besides those that the application has named.
    pub(super) fn capabilities(&self, mut named: ClientCapabilities) -> ClientCapabilities {
        if self.elicit_form.is_some() || self.elicit_url.is_some() {
            let mode = |is_offered: bool| is_offered.then(JsonObject::new);
            let form = mode(self.elicit_form.is_some());
            let url = mode(self.elicit_url.is_some());
            let modes = ElicitationCapability { form, url };
            named.elicitation.get_or_insert(modes);
        }
        if self.sample.is_some() {
            let tools = self.samples_with_tools.then(JsonObject::new);
            let sampling = SamplingCapability { tools, context: None };
            named.sampling.get_or_insert(sampling);
        }
        if self.roots().is_some() || self.ask_roots.is_some() {
            named.roots.get_or_insert(RootsCapability::default().with_list_changed(true));
        }
        named
    }

    /// Replaces the roots.
    pub(super) fn set_roots(&self, roots: Vec<Root>) {
        *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots);
    }

    fn roots(&self) -> Option<Vec<Root>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves a request of a legacy server.
    pub(super) async fn serve(&self, method: &str, params: Option<&RawJson>) -> Outcome {
        let text = params.map_or("{}", RawJson::as_str);
        match method {
            methods::PING => encoded(&EmptyResult::new()),
            methods::ELICIT => {
                let params = serde_json::from_str(text).map_err(|error| invalid(&error))?;
                encoded(&self.elicit(params).await?)
            }
            methods::CREATE_MESSAGE => encoded(&self.create_message(read(text)?).await?),
            methods::LIST_ROOTS => encoded(&self.list_roots().await?),
            _ => Err(ErrorObject::method_not_found()),
        }
    }

    /// Answers an input request of a modern server.
    pub(super) async fn answer(&self, request: InputRequest) -> Result<InputResponse, ErrorObject> {
        match request {
            InputRequest::Elicit(params) => self.elicit(params).await.map(Into::into),
            InputRequest::CreateMessage(params) => {
                self.create_message(*params).await.map(Into::into)
            }
            InputRequest::ListRoots(_) => self.list_roots().await.map(Into::into),
            InputRequest::Other { .. } => Err(ErrorObject::method_not_found()),
        }
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        let (handler, form) = match &params {
            ElicitParams::Form(form) => (&self.elicit_form, Some(form.requested_schema.clone())),
            ElicitParams::Url(_) => (&self.elicit_url, None),
        };
        match handler {
            Some(handler) => {
                let answer = handler(params).await?;
                match form.filter(|_| !self.skips_validation) {
                    Some(form) => check_answer(&form, &answer).map(|()| answer),
                    None => Ok(answer),
                }
            }
            // A mode that the client has not declared (2025-11-25, elicitation, "Error Handling").
            None if self.elicit_form.is_some() || self.elicit_url.is_some() => Err(
                ErrorObject::new(-32602, "this client does not support this mode of elicitation"),
            ),
            None => Err(ErrorObject::method_not_found()),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        match &self.sample {
            Some(_) if params.tools.is_some() && !self.samples_with_tools => {
                Err(ErrorObject::new(-32602, "this client does not let the model call tools"))
            }
            Some(handler) => handler(params).await,
            None => Err(ErrorObject::method_not_found()),
        }
    }

    async fn list_roots(&self) -> Result<ListRootsResult, ErrorObject> {
        match &self.ask_roots {
            Some(ask) => ask(()).await.map(ListRootsResult::new),
            None => {
                self.roots().map(ListRootsResult::new).ok_or_else(ErrorObject::method_not_found)
            }
        }
    }
}

/// Checks what the user has filled in (2025-11-25 and 2026-07-28, elicitation, "Security").
fn check_answer(form: &ElicitationSchema, answer: &ElicitResult) -> Result<(), ErrorObject> {
    if answer.action != ElicitAction::Accept {
        return Ok(());
    }
    let schema = serde_json::to_value(form).map_err(ErrorObject::internal)?;
    let content = serde_json::to_value(answer.content.clone().unwrap_or_default());
    let content = content.map_err(ErrorObject::internal)?;
    let checked = Validator::new(&schema)
        .and_then(|schema| schema.check(&content).map_err(|fault| fault.to_string()));
    checked.map_err(|reason| {
        tracing::warn!(reason, "the answer of a handler does not match the form of the server");
        ErrorObject::new(-32603, "the answer of the user does not match the form")
            .with_data(&reason)
    })
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ErrorObject> {
    from_object(text).map_err(|error| invalid(&error))
}

fn invalid(error: &serde_json::Error) -> ErrorObject {
    ErrorObject::invalid_params().with_data(&error.to_string())
}

pub(super) fn encoded(result: &impl Serialize) -> Outcome {
    RawJson::encode(result).map_err(ErrorObject::internal)
}
