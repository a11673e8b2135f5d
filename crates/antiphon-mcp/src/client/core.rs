//! One connection to a server: sends requests in the form of its revision.
//!
//! A modern request names its revision and capabilities, and may need several rounds until its result is complete. A
//! legacy request may need a new session.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use antiphon::RawJson;
use serde::{Deserialize, Serialize};

use super::call::CallOptions;
use super::error::McpError;
use super::handshake::ServerState;
use super::inbox::{Inbox, locked};
use super::known_tools::KnownTools;
use super::renewal::Sessions;
use super::settings::Settings;
use super::wire::{Wire, WireCall};
use crate::types::meta::CLIENT_CAPABILITIES;
use crate::types::{
    ClientCapabilities, InputRequests, InputResponses, LoggingLevel, Meta, ResultType, from_object,
    methods,
};

/// The methods whose result may ask for input (2026-07-28, multi round-trip requests).
const MAY_ASK: [&str; 3] = [methods::CALL_TOOL, methods::GET_PROMPT, methods::READ_RESOURCE];

/// The most questions of a server at once.
const MAX_QUESTIONS: usize = 64;

/// The pause before a request is repeated that needs no input.
const PAUSE: Duration = Duration::from_millis(100);

/// One connection to a server.
pub(super) struct Core {
    pub(super) wire: Box<dyn Wire>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) settings: Settings,
    pub(super) tools: KnownTools,
    /// The least severe log messages that the application wants.
    pub(super) log_level: Mutex<Option<LoggingLevel>>,
    /// How many subscriptions of a legacy server use each resource.
    pub(super) subscribed_uris: Mutex<HashMap<String, usize>>,
    state: RwLock<Arc<ServerState>>,
    next_id: AtomicU64,
    /// For tasks that outlive the call that starts them.
    pub(super) this: Weak<Self>,
    /// Locked while a session or a connection begins.
    pub(super) session: tokio::sync::Mutex<Sessions>,
    /// The number of the session or the connection.
    pub(super) session_count: AtomicU64,
    /// Whether the last handshake of a new session was not completed.
    pub(super) is_half_begun: AtomicBool,
}

type Members = BTreeMap<String, RawJson>;

impl Core {
    pub(super) fn new(wire: Box<dyn Wire>, inbox: Arc<Inbox>, settings: Settings) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            wire,
            inbox,
            settings,
            tools: KnownTools::default(),
            log_level: Mutex::default(),
            subscribed_uris: Mutex::default(),
            state: RwLock::default(),
            next_id: AtomicU64::new(1),
            session: tokio::sync::Mutex::default(),
            session_count: AtomicU64::new(0),
            is_half_begun: AtomicBool::new(false),
        })
    }

    /// What is known about the server.
    pub(super) fn state(&self) -> Arc<ServerState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_state(&self, state: ServerState) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    pub(super) fn is_modern(&self) -> bool {
        self.state().revision.is_modern()
    }

    /// The capabilities of every revision. The handshake of 2025-11-25 adds its tasks.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let mut named = self.settings.capabilities.clone();
        named.tasks = None;
        self.inbox.handlers.capabilities(named)
    }

    /// Whether the client has declared that a server may turn calls into tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.settings.capabilities.has_extension(crate::types::tasks::EXTENSION)
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request, and repeats it with the input that the server asks for.
    pub(super) async fn request(
        &self,
        method: &str,
        params: RawJson,
        options: &CallOptions,
    ) -> Result<RawJson, McpError> {
        self.request_in_rounds(method, params, options).await.map(|(result, _)| result)
    }

    /// Like `request`, and returns also how often the server has asked for input.
    pub(super) async fn request_in_rounds(
        &self,
        method: &str,
        params: RawJson,
        options: &CallOptions,
    ) -> Result<(RawJson, usize), McpError> {
        let encode = |source| McpError::Encode { method: method.to_owned(), source };
        let mut members: Members = from_object(params.as_str()).map_err(encode)?;
        for round in 0..=self.settings.input_rounds {
            let result = self.send_in_session(method, &members, options).await?;
            let Some(asked) = self.asked(method, &result)? else { return Ok((result, round)) };
            if round == self.settings.input_rounds {
                break;
            }
            self.fill_in(&mut members, asked, round).await?;
        }
        Err(McpError::TooManyInputRounds(self.settings.input_rounds))
    }

    /// Sends a request. If the session or the connection has ended, begins a new one and sends the request again: the
    /// server has not processed it (2025-11-25, transports, "Session Management").
    async fn send_in_session(
        &self,
        method: &str,
        members: &Members,
        options: &CallOptions,
    ) -> Result<RawJson, McpError> {
        let session = self.session_count.load(Ordering::Acquire);
        let sent = match self.is_half_begun.load(Ordering::Acquire) {
            true => Err(McpError::SessionEnded),
            false => self.send(self.next_id(), method, members, options).await,
        };
        match sent {
            Err(McpError::SessionEnded) => {
                // Boxed, because it is rare and large.
                let renewing = Box::pin(self.renew_session(session));
                options.within(&self.inbox.clock, self.settings.timeout, None, renewing).await?;
                self.send(self.next_id(), method, members, options).await
            }
            outcome => outcome,
        }
    }

    /// Sends a request once.
    pub(super) async fn send(
        &self,
        id: u64,
        method: &str,
        members: &Members,
        options: &CallOptions,
    ) -> Result<RawJson, McpError> {
        let sink = options.sink();
        let watched = sink.as_ref().map(|sink| self.inbox.watch(sink.clone()));
        let mut meta = self.meta(members, options);
        if let Some(watched) = &watched {
            meta.set_progress_token(&watched.token);
        }
        let encode = |source| McpError::Encode { method: method.to_owned(), source };
        let params = RawJson::encode(&WithMeta { meta, members }).map_err(encode)?;
        let headers = options.headers.clone();
        let call = WireCall { id, method: method.to_owned(), params, headers };
        let response = self.wire.request(call);
        options.within(&self.inbox.clock, self.settings.timeout, sink.as_deref(), response).await
    }

    /// The `_meta` of a request.
    fn meta(&self, members: &Members, options: &CallOptions) -> Meta {
        let own = members.get("_meta").and_then(|meta| meta.decode::<Meta>().ok());
        let mut meta = own.unwrap_or_default();
        meta.0.extend(options.meta.0.clone());
        let state = self.state();
        if state.revision.is_modern() {
            meta.set_protocol_version(state.revision.as_str());
            meta.set_client_info(&self.settings.info);
            // A bridge names those of the client that it calls for.
            if !meta.0.contains_key(CLIENT_CAPABILITIES) {
                meta.set_client_capabilities(&self.capabilities());
            }
            if let Some(level) = *locked(&self.log_level) {
                meta.set_log_level(level);
            }
        }
        meta
    }

    /// Returns what the server asks for; `None` if the result is complete.
    fn asked(&self, method: &str, result: &RawJson) -> Result<Option<Asked>, McpError> {
        if !self.is_modern() {
            return Ok(None);
        }
        let decode = |source| McpError::Decode { method: method.to_owned(), source };
        let asked: Asked = from_object(result.as_str()).map_err(decode)?;
        match asked.result_type {
            None | Some(ResultType::Complete) => Ok(None),
            Some(ResultType::InputRequired) if MAY_ASK.contains(&method) => {
                if asked.input_requests.is_none() && asked.request_state.is_none() {
                    let reason = "a result that requires input has neither requests nor a state";
                    return Err(McpError::Protocol(reason.to_owned()));
                }
                Ok(Some(asked))
            }
            Some(ResultType::Task) if method == methods::CALL_TOOL && self.has_tasks() => Ok(None),
            Some(other) => {
                Err(McpError::Protocol(format!("`{method}` has the result type {other:?}")))
            }
        }
    }

    /// Answers what the server asks for, in the params of the next request.
    async fn fill_in(
        &self,
        members: &mut Members,
        asked: Asked,
        round: usize,
    ) -> Result<(), McpError> {
        members.remove("inputResponses");
        // The state is sent back as it was received, and never without one.
        match asked.request_state {
            Some(state) => drop(members.insert("requestState".to_owned(), state)),
            None => drop(members.remove("requestState")),
        }
        let Some(requests) = asked.input_requests else {
            tokio::time::sleep(PAUSE * u32::try_from(round + 1).unwrap_or(1)).await;
            return Ok(());
        };
        let answers = self.answers(requests).await?;
        let encode = |source| McpError::Encode { method: "inputResponses".to_owned(), source };
        let answers = RawJson::encode(&answers).map_err(encode)?;
        members.insert("inputResponses".to_owned(), answers);
        Ok(())
    }

    /// Answers questions with the handlers of the application.
    pub(super) async fn answers(
        &self,
        requests: InputRequests,
    ) -> Result<InputResponses, McpError> {
        if requests.len() > MAX_QUESTIONS {
            let reason = format!("the server asks more than {MAX_QUESTIONS} questions at once");
            return Err(McpError::Protocol(reason));
        }
        let mut answers = InputResponses::new();
        for (name, request) in requests {
            let method = request.method().to_owned();
            match self.inbox.handlers.answer(request).await {
                Ok(answer) => drop(answers.insert(name, answer)),
                Err(error) => return Err(McpError::Input { name, method, error }),
            }
        }
        Ok(answers)
    }
}

/// The members of a result that asks for input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(default)]
    result_type: Option<ResultType>,
    #[serde(default)]
    input_requests: Option<InputRequests>,
    #[serde(default)]
    request_state: Option<RawJson>,
}

/// Params with other metadata.
struct WithMeta<'a> {
    meta: Meta,
    members: &'a Members,
}

impl Serialize for WithMeta<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.members.iter().filter(|(name, _)| *name != "_meta") {
            map.serialize_entry(name, value)?;
        }
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", &self.meta)?;
        }
        map.end()
    }
}
