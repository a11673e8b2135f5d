//! The notifications of the server: progress, log messages, list changes and subscriptions.

use super::Monitor;
use crate::server::mcp::SUBSCRIPTION_ID;
use crate::transcript::json::Json;
use crate::transcript::{McpEra, McpRule};

/// The log levels, the least severe first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Returns the severity of a log level.
pub(super) fn severity(level: &Json) -> Option<usize> {
    LEVELS.iter().position(|name| level.is_text(name))
}

impl Monitor {
    pub(super) fn notification(&mut self, method: &str, json: &Json, message: &[u8]) {
        match method {
            "notifications/progress" => self.progress(json, message),
            "notifications/message" => self.log(json, message),
            "notifications/subscriptions/acknowledged"
            | "notifications/resources/updated"
            | "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => match self.era {
                McpEra::Modern => self.change(method, json, message),
                McpEra::Legacy => self.list_changed(method, message),
            },
            _ => {}
        }
    }

    fn progress(&mut self, json: &Json, message: &[u8]) {
        let param = |name| json.member("params").and_then(|params| params.member(name));
        let token = param("progressToken").map_or("", Json::text);
        let Some(progress) = self.tokens.get_mut(token) else {
            let what = "a progress notification has a token that the client did not send";
            return self.add(McpRule::ProgressToken, what, message);
        };
        if progress.is_over {
            let what = "a progress notification follows the response to its request";
            return self.add(McpRule::ProgressEnds, what, message);
        }
        let value = param("progress").and_then(|value| value.text().parse::<f64>().ok());
        let grows = match (value, progress.last) {
            (Some(value), Some(last)) => value > last,
            (value, _) => value.is_some(),
        };
        progress.last = value.or(progress.last);
        if !grows {
            let what = "the progress of a request does not increase";
            self.add(McpRule::ProgressGrows, what, message);
        }
    }

    fn log(&self, json: &Json, message: &[u8]) {
        if self.capability("logging").is_none() {
            let what = "a log message arrives, but the server does not declare `logging`";
            self.add(McpRule::LogCapability, what, message);
        }
        let asked = self.in_flight.values().filter_map(|sent| sent.level).min();
        let level = match self.era {
            McpEra::Modern if asked.is_none() => {
                let what = "a log message arrives, but no request asks for one";
                return self.add(McpRule::LogRequested, what, message);
            }
            McpEra::Modern => asked,
            McpEra::Legacy => self.level,
        };
        let found = json.member("params").and_then(|params| params.member("level"));
        let found = found.and_then(severity);
        if found.is_none() || found < level {
            let what =
                "the level of a log message is unknown, or below the level that the client set";
            self.add(McpRule::LogLevel, what, message);
        }
    }

    fn list_changed(&self, method: &str, message: &[u8]) {
        let Some(kind) = method.strip_suffix("/list_changed") else { return };
        let kind = kind.trim_start_matches("notifications/");
        let declared = self.capability(kind).and_then(|found| found.member("listChanged"));
        if declared.is_none_or(|declared| declared.text() != "true") {
            let what =
                format!("{method} arrives, but the server does not declare {kind}.listChanged");
            self.add(McpRule::ListChanged, &what, message);
        }
    }

    /// A notification that belongs to a subscription.
    fn change(&mut self, method: &str, json: &Json, message: &[u8]) {
        let meta = json.member("params").and_then(|params| params.member("_meta"));
        let id = meta.and_then(|meta| meta.member(SUBSCRIPTION_ID)).map_or("", Json::text);
        let what = match self.subscriptions.get_mut(id) {
            None => format!("{method} has no {SUBSCRIPTION_ID} of an open subscription"),
            Some(is_acknowledged) if method.ends_with("/acknowledged") => {
                *is_acknowledged = true;
                return;
            }
            Some(true) => return,
            Some(false) => format!("{method} arrives before the acknowledgment"),
        };
        self.add(McpRule::Subscription, &what, message);
    }

    fn capability(&self, name: &str) -> Option<&Json> {
        self.capabilities.as_ref()?.member(name)
    }
}
