//! A small MCP server that is right in every case, unless it has a fault.
//!
//! It has a tool that adds, a slow tool with progress and log messages, a resource and a prompt. Its tools are on two
//! pages.

use std::time::Duration;

use serde_json::{Value, json};

use super::fault::Fault;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_REQUEST: i64 = -32600;
pub(super) const INVALID_PARAMS: i64 = -32602;

/// The generation of MCP that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

pub(super) const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// An error of a request.
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) data: Option<Value>,
}

impl From<i64> for Refusal {
    fn from(code: i64) -> Self {
        Self { code, data: None }
    }
}

/// The way of one request back to its client while it runs.
pub(super) trait Surroundings {
    /// Sends a notification or a request.
    fn send(&mut self, message: Value);
    fn is_cancelled(&self) -> bool;
}

/// The server.
#[derive(Clone, Copy)]
pub(super) struct Reference {
    pub(super) era: Era,
    fault: Option<Fault>,
}

/// The state of one legacy session.
#[derive(Clone, Copy, Default)]
pub(super) struct Session {
    pub(super) level: usize,
    /// The handshake has begun.
    pub(super) is_open: bool,
}

impl Reference {
    pub(super) fn new(era: Era, fault: Option<Fault>) -> Self {
        Self { era, fault }
    }

    pub(super) fn has(self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Returns the response to one message; nothing for a notification, a response and a cancelled request.
    pub(super) fn answer(
        self,
        message: &Value,
        session: &mut Session,
        around: &mut dyn Surroundings,
    ) -> Option<Value> {
        let Some(method) = message["method"].as_str() else {
            return self
                .has(Fault::ResponsesAreAnswered)
                .then(|| error(&Value::Null, INVALID_REQUEST));
        };
        let id = match message.get("id") {
            None if self.has(Fault::NotificationsAreAnswered) => &Value::Null,
            None => return None,
            Some(Value::Null) if !self.has(Fault::NullIdIsAnswered) => {
                return Some(error(&Value::Null, INVALID_REQUEST));
            }
            Some(id) if *id == json!(0) && self.has(Fault::ZeroIdIsNone) => return None,
            Some(id) => id,
        };
        let params = &message["params"];
        let outcome = match self.era {
            Era::Legacy => self.legacy(method, params, session, around),
            Era::Modern => self.modern(method, params, id, around),
        };
        if around.is_cancelled() && !self.has(Fault::CancelledIsAnswered) {
            return None;
        }
        let id = match id {
            id if self.has(Fault::IdsBecomeText) && id.is_number() => &json!(id.to_string()),
            id => id,
        };
        let response = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Refusal { code, data: None }) => error(id, code),
            Err(Refusal { code, data }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": data}})
            }
        };
        Some(self.spoiled(response))
    }

    fn spoiled(self, mut response: Value) -> Value {
        if self.has(Fault::ResultAndError) && response.get("result").is_some() {
            response["error"] = json!({"code": 0, "message": "none"});
        }
        response
    }

    fn legacy(
        self,
        method: &str,
        params: &Value,
        session: &mut Session,
        around: &mut dyn Surroundings,
    ) -> Result<Value, Refusal> {
        if !session.is_open && !matches!(method, "initialize" | "ping") {
            return Err(INVALID_REQUEST.into());
        }
        match method {
            "initialize" => {
                session.is_open = true;
                let asked = params["protocolVersion"].as_str().ok_or(INVALID_PARAMS)?;
                let is_known = LEGACY.contains(&asked) || self.has(Fault::VersionIsEchoed);
                let version = if is_known { asked } else { LEGACY[0] };
                Ok(json!({
                    "protocolVersion": version,
                    "capabilities": self.capabilities(),
                    "serverInfo": {"name": "reference", "version": "1"},
                }))
            }
            "ping" if self.has(Fault::PingReturnsNull) => Ok(Value::Null),
            "ping" => Ok(json!({})),
            "logging/setLevel" if !self.has(Fault::LogsWithoutCapability) => {
                session.level = severity(&params["level"]).ok_or(INVALID_PARAMS)?;
                Ok(json!({}))
            }
            "tools/call" => self.call(params, session.level, true, around),
            _ => self.common(method, params),
        }
    }

    fn modern(
        self,
        method: &str,
        params: &Value,
        id: &Value,
        around: &mut dyn Surroundings,
    ) -> Result<Value, Refusal> {
        let level = self.meta(&params["_meta"])?;
        let mut result = match method {
            "server/discover" => {
                json!({"supportedVersions": [MODERN], "capabilities": self.capabilities(), "ttlMs": 0, "cacheScope": "public"})
            }
            "ping" if self.has(Fault::PingRemains) => json!({}),
            "subscriptions/listen" => {
                self.listen(params, id, around);
                json!({})
            }
            "tools/call" => {
                let asked = level.unwrap_or(0);
                let logs = level.is_some() || self.has(Fault::LogsAreNotRequested);
                self.call(params, asked, logs, around)?
            }
            _ => self.common(method, params)?,
        };
        if self.has(Fault::CacheHintsAreMissing) {
            result.as_object_mut().unwrap().remove("ttlMs");
        }
        if !self.has(Fault::ResultTypeIsMissing) {
            result["resultType"] = json!("complete");
        }
        if !self.has(Fault::ServerInfoIsMissing) {
            let server = json!({"name": "reference", "version": "1"});
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = server;
        }
        Ok(result)
    }

    /// Checks the metadata of a modern request, and returns its log level.
    fn meta(self, meta: &Value) -> Result<Option<usize>, Refusal> {
        if self.has(Fault::MetaIsNotChecked) {
            return Ok(None);
        }
        let version = meta[PROTOCOL_VERSION].as_str().ok_or(INVALID_PARAMS)?;
        if !meta[CAPABILITIES].is_object() {
            return Err(INVALID_PARAMS.into());
        }
        if version != MODERN && !self.has(Fault::AnyVersionIsServed) {
            let code = if self.has(Fault::UndefinedReservedCode) { -32050 } else { -32022 };
            return Err(Refusal {
                code,
                data: Some(json!({"supported": [MODERN], "requested": version})),
            });
        }
        match meta.get(LOG_LEVEL) {
            None => Ok(None),
            Some(level) => Ok(Some(severity(level).ok_or(INVALID_PARAMS)?)),
        }
    }

    /// Keeps a subscription open until it is cancelled.
    fn listen(self, params: &Value, id: &Value, around: &mut dyn Surroundings) {
        let mut meta = json!({});
        if !self.has(Fault::SubscriptionIdIsMissing) {
            meta["io.modelcontextprotocol/subscriptionId"] = id.clone();
        }
        if !self.has(Fault::ListenHasNoAcknowledgment) {
            let filter = &params["notifications"];
            around.send(notification(
                "subscriptions/acknowledged",
                &json!({"_meta": meta, "notifications": filter}),
            ));
        }
        around.send(notification("tools/list_changed", &json!({"_meta": meta})));
        while !around.is_cancelled() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn capabilities(self) -> Value {
        let mut all = json!({
            "tools": {"listChanged": true}, "resources": {}, "prompts": {}, "logging": {},
        });
        let declared = all.as_object_mut().unwrap();
        if self.has(Fault::LogsWithoutCapability) {
            declared.remove("logging");
        }
        if self.has(Fault::ListChangesWithoutCapability) {
            declared.insert("tools".to_owned(), json!({}));
        }
        all
    }

    /// The methods of both eras.
    fn common(self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let not_found = match (self.era, self.has(Fault::OldResourceCode)) {
            (Era::Modern, false) => INVALID_PARAMS,
            _ => -32002,
        };
        let mut result = match method {
            "tools/list" if self.has(Fault::ToolsAreDeclaredOnly) => {
                return Err(METHOD_NOT_FOUND.into());
            }
            "tools/list" => self.tools(params)?,
            "resources/list" => json!({"resources": [{"uri": "memo://a", "name": "a"}]}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/read" if params["uri"] == "memo://a" => {
                json!({"contents": [{"uri": "memo://a", "text": "memo"}]})
            }
            "resources/read" => return Err(not_found.into()),
            "prompts/list" => json!({"prompts": [{"name": "hello"}]}),
            "prompts/get" if params["name"] == "hello" => json!({"messages": []}),
            "prompts/get" => return Err(INVALID_PARAMS.into()),
            "completion/complete" if self.has(Fault::UndeclaredMethodWorks) => {
                json!({"completion": {"values": []}})
            }
            _ => return Err(METHOD_NOT_FOUND.into()),
        };
        if self.era == Era::Modern && !method.starts_with("prompts/get") {
            result["ttlMs"] = json!(1000);
            result["cacheScope"] = json!("private");
        }
        Ok(result)
    }

    fn tools(self, params: &Value) -> Result<Value, Refusal> {
        let mut schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        });
        if self.has(Fault::SchemaHasNoType) {
            schema.as_object_mut().unwrap().remove("type");
        }
        let read_only = json!({"readOnlyHint": true});
        let add = json!({"name": "add", "inputSchema": schema, "annotations": read_only});
        let name = if self.has(Fault::ToolNamesRepeat) { "add" } else { "slow" };
        let slow = json!({"name": name, "inputSchema": {"type": "object"}});
        match params.get("cursor").map(|cursor| cursor.as_str()) {
            None => Ok(json!({"tools": [add], "nextCursor": "second"})),
            Some(Some("second")) if self.has(Fault::CursorLoops) => {
                Ok(json!({"tools": [slow], "nextCursor": "second"}))
            }
            Some(Some("second")) => Ok(json!({"tools": [slow]})),
            Some(_) if self.has(Fault::CursorIsIgnored) => Ok(json!({"tools": [add]})),
            Some(_) => Err(INVALID_PARAMS.into()),
        }
    }

    fn call(
        self,
        params: &Value,
        level: usize,
        logs: bool,
        around: &mut dyn Surroundings,
    ) -> Result<Value, Refusal> {
        let arguments = &params["arguments"];
        match params["name"].as_str().ok_or(INVALID_PARAMS)? {
            "add" => match (arguments["a"].as_i64(), arguments["b"].as_i64()) {
                (Some(a), Some(b)) => Ok(text(&(a + b).to_string())),
                _ if self.has(Fault::ArgumentsAreNotChecked) => Ok(text("0")),
                _ => {
                    let mut result = text("a and b are required");
                    result["isError"] = json!(true);
                    Ok(result)
                }
            },
            "slow" => {
                self.work(&params["_meta"]["progressToken"], level, logs, around);
                Ok(text("done"))
            }
            _ if self.has(Fault::UnknownToolSucceeds) => Ok(text("done")),
            _ => Err(INVALID_PARAMS.into()),
        }
    }

    /// Works for a while, with progress and log messages.
    fn work(self, token: &Value, level: usize, logs: bool, around: &mut dyn Surroundings) {
        if self.has(Fault::CallsTheClient) {
            around.send(json!({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}));
        }
        if self.has(Fault::ListChangesWithoutCapability) {
            around.send(notification("tools/list_changed", &json!({})));
        }
        for (step, name) in ["debug", "warning", "emergency"].into_iter().enumerate() {
            let is_loud = severity(&json!(name)) >= Some(level);
            if logs && (is_loud || self.has(Fault::LogsBelowLevel)) {
                around.send(notification("message", &json!({"level": name, "data": "at work"})));
            }
            if !token.is_null() {
                let value = if self.has(Fault::ProgressDecreases) { 3 - step } else { step };
                around.send(self.progress(token, value));
            }
            std::thread::sleep(Duration::from_millis(90));
        }
    }

    pub(super) fn progress(self, token: &Value, value: usize) -> Value {
        let token = match token {
            token if self.has(Fault::ProgressTokenIsText) && token.is_number() => {
                json!(token.to_string())
            }
            token => token.clone(),
        };
        notification("progress", &json!({"progressToken": token, "progress": value}))
    }
}

fn notification(name: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{name}"), "params": params})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn severity(level: &Value) -> Option<usize> {
    LEVELS.iter().position(|name| level == name)
}

/// Returns an error response.
pub(super) fn error(id: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}})
}
