//! Watches every message of one connection, and records what breaks the rules of the protocol.
//!
//! It sees both directions, so it knows which requests are in flight, their progress tokens and their log levels. It
//! never decides whether a case passes.

mod message;
mod notifications;

use std::collections::HashMap;
use std::sync::Arc;

use self::message::{envelope_fault, id_fault};
use super::{LOG_LEVEL, SERVER_INFO, Violations, WITHOUT_BATCHES, features};
use crate::server::connection::{HttpResponse, ServerEvent};
use crate::transcript::json::{Json, JsonValue};
use crate::transcript::{McpEra, McpRule};

/// The monitor of one connection.
pub(crate) struct Monitor {
    era: McpEra,
    /// The version of a legacy session.
    version: Option<String>,
    capabilities: Option<Json>,
    /// The requests without a response, by the text of their id.
    in_flight: HashMap<String, SentRequest>,
    /// The progress of each token that the client sent, by its text.
    tokens: HashMap<String, Progress>,
    /// The subscriptions of the connection, by the text of their id. `true` after the acknowledgment.
    subscriptions: HashMap<String, bool>,
    /// The log level that the server has confirmed.
    level: Option<usize>,
    /// The next HTTP response belongs to a request.
    expects_response: bool,
    violations: Arc<Violations>,
}

/// A request that the client sent.
struct SentRequest {
    method: String,
    token: Option<String>,
    /// The log level that the request asks for.
    level: Option<usize>,
}

#[derive(Default)]
struct Progress {
    last: Option<f64>,
    is_over: bool,
}

/// The methods whose complete results have caching hints.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

impl Monitor {
    pub(super) fn new(
        era: McpEra,
        capabilities: Option<Json>,
        violations: &Arc<Violations>,
    ) -> Self {
        Self {
            era,
            version: None,
            capabilities,
            in_flight: HashMap::new(),
            tokens: HashMap::new(),
            subscriptions: HashMap::new(),
            level: None,
            expects_response: false,
            violations: Arc::clone(violations),
        }
    }

    /// Reports whether the response to `initialize` is awaited.
    pub(super) fn is_initializing(&self) -> bool {
        self.in_flight.values().any(|sent| sent.method == "initialize")
    }

    /// Checks the id of a new session.
    pub(super) fn check_session_id(&self, session: &str) {
        if session.is_empty() || !session.bytes().all(|byte| matches!(byte, 0x21..=0x7E)) {
            let what = format!("the session id {session:?} is not visible ASCII");
            self.violations.add(McpRule::SessionId, self.era, what, b"");
        }
        if !self.violations.is_new_session(session) {
            let what = format!("two sessions have the id {session:?}");
            self.violations.add(McpRule::SessionUnique, self.era, what, b"");
        }
    }

    /// Observes a message of the client.
    pub(super) fn sent(&mut self, message: &[u8]) {
        self.expects_response = false;
        let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
        else {
            return;
        };
        let (Some(method), Some(id)) = (json.member("method"), json.member("id")) else { return };
        let method = method.lossy().into_owned();
        let meta = json.member("params").and_then(|params| params.member("_meta"));
        let token = meta.and_then(|meta| meta.member("progressToken"));
        let token = token.map(|token| token.text().to_owned());
        if let Some(token) = &token {
            self.tokens.insert(token.clone(), Progress::default());
        }
        let level = match &*method {
            "logging/setLevel" => json.member("params").and_then(|params| params.member("level")),
            _ => meta.and_then(|meta| meta.member(LOG_LEVEL)),
        };
        let level = level.and_then(notifications::severity);
        if method == "subscriptions/listen" {
            self.subscriptions.insert(id.text().to_owned(), false);
        }
        self.expects_response = true;
        self.in_flight.insert(id.text().to_owned(), SentRequest { method, token, level });
    }

    /// Observes an event. Returns the version, if it completes a handshake.
    pub(super) fn received(&mut self, event: &ServerEvent) -> Option<String> {
        match event {
            ServerEvent::Message(message) => self.message(message),
            ServerEvent::Response(response) if response.status >= 200 => self.response(response),
            _ => None,
        }
    }

    fn response(&mut self, response: &HttpResponse) -> Option<String> {
        let is_expected = std::mem::take(&mut self.expects_response);
        if response.is_stream || response.body.is_empty() || !is_expected {
            return None;
        }
        let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let is_json = kind.starts_with("application/json");
        if (200..300).contains(&response.status) && !is_json {
            let what = format!("the response to a request has the content type {kind:?}");
            self.add(McpRule::ContentType, &what, &response.body);
        }
        // The body of a refusal may be anything.
        if is_json { self.message(&response.body) } else { None }
    }

    fn message(&mut self, message: &[u8]) -> Option<String> {
        let json = std::str::from_utf8(message).map_err(|_| "it is not UTF-8".to_owned());
        let json = match json.and_then(Json::parse) {
            Ok(json) => json,
            Err(fault) => {
                self.add(McpRule::Json, &format!("the server sent {fault}"), message);
                return None;
            }
        };
        if matches!(json.value, JsonValue::Array(_)) {
            let allows_batches =
                self.version.as_deref().is_some_and(|version| version < WITHOUT_BATCHES);
            if !allows_batches {
                self.add(McpRule::Batch, "the server sent an Array", message);
            }
            return None;
        }
        if let Some(fault) = id_fault(&json) {
            self.add(McpRule::NullId, fault, message);
        }
        if json.member("result").is_some() && json.member("error").is_some() {
            self.add(McpRule::ResultOrError, "a response has a result and an error", message);
        } else if let Some(fault) = envelope_fault(&json) {
            self.add(McpRule::Envelope, &fault, message);
            return None;
        }
        match json.member("method") {
            Some(method) if json.member("id").is_some() => {
                self.call(&method.lossy(), message);
                None
            }
            Some(method) => {
                self.notification(&method.lossy(), &json, message);
                None
            }
            None => self.answer(&json, message),
        }
    }

    /// A request of the server. This client has no capabilities, so only `ping` is allowed.
    fn call(&self, method: &str, message: &[u8]) {
        if self.era == McpEra::Modern || method != "ping" {
            let what = format!("the server calls `{method}`, which this client does not offer");
            self.add(McpRule::ServerRequest, &what, message);
        }
    }

    fn answer(&mut self, json: &Json, message: &[u8]) -> Option<String> {
        let sent = json.member("id").and_then(|id| self.in_flight.remove(id.text()));
        if let Some(token) = sent.as_ref().and_then(|sent| sent.token.as_ref())
            && let Some(progress) = self.tokens.get_mut(token)
        {
            progress.is_over = true;
        }
        let Some(result) = json.member("result") else {
            self.check_code(json, message);
            return None;
        };
        let sent = sent?;
        if self.era == McpEra::Modern {
            self.check_modern_result(&sent.method, result, message);
        }
        match &*sent.method {
            "logging/setLevel" => self.level = sent.level,
            "initialize" => return self.initialized(result),
            _ => {}
        }
        None
    }

    fn initialized(&mut self, result: &Json) -> Option<String> {
        self.capabilities = result.member("capabilities").cloned();
        let version = result.member("protocolVersion")?.lossy().into_owned();
        self.version = Some(version.clone()).filter(|version| features::is_legacy(version));
        self.version.clone()
    }

    fn check_modern_result(&self, method: &str, result: &Json, message: &[u8]) {
        let kind = result.member("resultType").filter(|kind| kind.is_string());
        if kind.is_none() {
            self.add(McpRule::ResultType, "a result has no String `resultType`", message);
        }
        let meta = result.member("_meta");
        if meta.and_then(|meta| meta.member(SERVER_INFO)).is_none() {
            self.add(
                McpRule::ServerInfo,
                &format!("the `_meta` of a result has no {SERVER_INFO}"),
                message,
            );
        }
        let is_interim = kind.is_some_and(|kind| kind.is_text("input_required"));
        if !CACHEABLE.contains(&method) || is_interim {
            return;
        }
        let ttl = result.member("ttlMs").and_then(|ttl| ttl.text().parse::<f64>().ok());
        if !ttl.is_some_and(|ttl| ttl >= 0.0 && ttl.fract() == 0.0) {
            let what = format!("the result of {method} has no `ttlMs` of 0 or more");
            self.add(McpRule::CacheHints, &what, message);
        }
        let scope = result.member("cacheScope");
        if !scope.is_some_and(|scope| scope.is_text("public") || scope.is_text("private")) {
            let what = format!("the result of {method} has no `cacheScope` public or private");
            self.add(McpRule::CacheHints, &what, message);
        }
    }

    /// Checks the codes that only the specification may define.
    fn check_code(&self, json: &Json, message: &[u8]) {
        let code = json.member("error").and_then(|error| error.member("code"));
        let Some(code) = code.and_then(|code| code.text().parse::<i64>().ok()) else { return };
        let is_undefined = (-32_099..=-32_020).contains(&code) && code < -32_022;
        if self.era == McpEra::Modern && (is_undefined || code == -32_002 || code == -32_042) {
            let what = format!("MCP reserves the error code {code} and does not define it");
            self.add(McpRule::ReservedCode, &what, message);
        }
    }

    fn add(&self, rule: McpRule, what: &str, message: &[u8]) {
        self.violations.add(rule, self.era, what, message);
    }
}

#[cfg(test)]
mod tests;
