//! The features of an MCP server in one era: what `@ needs` can require, and the values of the placeholders.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::LEGACY;
use crate::server::server_access::quoted;
use crate::transcript::McpEra;
use crate::transcript::json::Json;

/// The capabilities that a case can require, or require to be absent with `no-`.
const CAPABILITIES: [&str; 5] = ["tools", "prompts", "resources", "logging", "completions"];

/// The duration of a call that can be cancelled: not too short, and not too long for the run.
const SLOW: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_millis(2_500);

/// The features of a server in one era.
#[derive(Clone, Debug)]
pub(crate) struct McpFeatures {
    pub(super) era: McpEra,
    version: String,
    has: BTreeSet<String>,
    /// The time from a new connection to its first response.
    pub(crate) start: Duration,
    /// The duration of a call of the tool.
    pub(crate) tool_took: Duration,
    /// Names of placeholders, and their values as JSON.
    bindings: Vec<(&'static str, String)>,
}

impl McpFeatures {
    pub(super) fn new(era: McpEra, version: &str, capabilities: Option<&Json>) -> Self {
        let mut features = Self {
            era,
            version: version.to_owned(),
            has: BTreeSet::new(),
            start: Duration::ZERO,
            tool_took: Duration::ZERO,
            bindings: Vec::new(),
        };
        let capability = |name| capabilities.and_then(|all| all.member(name));
        for name in CAPABILITIES {
            let no = if capability(name).is_some() { "" } else { "no-" };
            features.add(format!("{no}{name}"));
        }
        let is_on = |name, setting| {
            let setting = capability(name).and_then(|found| found.member(setting));
            setting.is_some_and(|setting| setting.text() == "true")
        };
        if is_on("resources", "subscribe") {
            features.add("subscribe");
        }
        if ["tools", "prompts", "resources"].iter().any(|name| is_on(name, "listChanged")) {
            features.add("list-changed");
        }
        features.bind("version", quoted(version));
        if era == McpEra::Modern {
            features.bind("meta", super::meta());
        }
        features
    }

    pub(super) fn add(&mut self, feature: impl Into<String>) {
        self.has.insert(feature.into());
    }

    pub(super) fn has(&self, feature: &str) -> bool {
        self.has.contains(feature)
    }

    /// Sets the value of a placeholder.
    pub(super) fn bind(&mut self, name: &'static str, json: String) {
        self.bindings.push((name, json));
    }

    /// Sets a tool that the cases can call.
    pub(super) fn set_tool(&mut self, name: &Json, arguments: &str, took: Duration) {
        self.tool_took = took;
        if SLOW.contains(&took) {
            self.add("slow-tool");
        }
        self.add("tool");
        self.bind("tool", name.text().to_owned());
        self.bind("tool-base64", quoted(&STANDARD.encode(&*name.lossy())));
        self.bind("arguments", arguments.to_owned());
    }

    pub(crate) fn bindings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.bindings.iter().map(|(name, json)| (*name, &**json))
    }

    /// Describes the feature, if the server does not have it.
    pub(crate) fn lacks(&self, need: &str) -> Option<String> {
        if let Some(version) = need.strip_suffix('+') {
            return (&*self.version < version).then(|| format!("MCP {version} or later"));
        }
        if let Some(version) = need.strip_suffix('-') {
            return (&*self.version > version).then(|| format!("MCP {version} or earlier"));
        }
        if self.has(need) {
            return None;
        }
        const NAMED: &str = r#"--method tools/call --params '{"name":"...","arguments":{}}'"#;
        Some(match need {
            "tool" => {
                format!("a tool that declares itself read-only; name a harmless one with {NAMED}")
            }
            "slow-tool" => format!("a tool that takes 0.2s to 2.5s; name one with {NAMED}"),
            "strict-tool" => "a harmless tool with a required argument".to_owned(),
            "resource" | "prompt" => format!("a {need} that can be read without arguments"),
            "session" => "a server that assigns a session id".to_owned(),
            "delete" => "a server that lets clients end a session".to_owned(),
            "loopback" => "a server on this machine".to_owned(),
            "no-legacy" => "a server that does not accept `initialize`".to_owned(),
            other => match other.strip_prefix("no-") {
                Some(capability) => format!("a server without the capability `{capability}`"),
                None => format!("the capability `{other}`"),
            },
        })
    }
}

/// Reports whether it is a version with a handshake.
pub(super) fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_capabilities_versions_and_features() {
        let text = r#"{"tools":{"listChanged":true},"resources":{"subscribe":false}}"#;
        let capabilities = Json::parse(text).unwrap();
        let features = McpFeatures::new(McpEra::Legacy, "2025-06-18", Some(&capabilities));
        for need in
            ["tools", "no-prompts", "list-changed", "2025-06-18+", "2025-06-18-", "2025-03-26+"]
        {
            assert_eq!(features.lacks(need), None, "{need}");
        }
        for need in ["no-tools", "prompts", "subscribe", "2025-11-25+", "2025-03-26-", "tool"] {
            assert!(features.lacks(need).is_some(), "{need}");
        }
    }
}
