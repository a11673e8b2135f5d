//! The names of the rules for every message of an MCP server. `server/mcp` applies them.

/// A rule for every message of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpRule {
    /// A message is JSON.
    Json,
    /// A message is an Object of JSON-RPC.
    Envelope,
    /// A response has either a result or an error.
    ResultOrError,
    /// A request or a result has an id that is not null.
    NullId,
    /// A message is not a batch.
    Batch,
    /// A server does not call the client unless the client allows it.
    ServerRequest,
    /// A progress notification has the token of a request.
    ProgressToken,
    /// The progress of a token increases.
    ProgressGrows,
    /// No progress follows the response.
    ProgressEnds,
    /// Log messages need the capability.
    LogCapability,
    /// Log messages are at or above the level.
    LogLevel,
    /// Log messages need a request for them.
    LogRequested,
    /// List changes need the capability.
    ListChanged,
    /// A result has a type.
    ResultType,
    /// A result that can be cached has `ttlMs` and `cacheScope`.
    CacheHints,
    /// A result names the server.
    ServerInfo,
    /// The specification defines each reserved error code.
    ReservedCode,
    /// A change notification belongs to a subscription.
    Subscription,
    /// An HTTP response with messages is JSON or an event stream.
    ContentType,
    /// A session id is visible ASCII.
    SessionId,
    /// A session id belongs to one session.
    SessionUnique,
    /// A list is an Array of valid entries.
    ListShape,
    /// The schema of a tool is an Object schema.
    ToolSchema,
    /// The names of a list are unique.
    UniqueNames,
    /// Pages end.
    CursorLoop,
    /// All pages have one cache scope.
    PageScope,
    /// The supported versions contain a version that the server accepts.
    SupportedVersions,
}

const NAMES: [(&str, McpRule); 27] = [
    ("json", McpRule::Json),
    ("envelope", McpRule::Envelope),
    ("result-or-error", McpRule::ResultOrError),
    ("null-id", McpRule::NullId),
    ("batch", McpRule::Batch),
    ("server-request", McpRule::ServerRequest),
    ("progress-token", McpRule::ProgressToken),
    ("progress-grows", McpRule::ProgressGrows),
    ("progress-ends", McpRule::ProgressEnds),
    ("log-capability", McpRule::LogCapability),
    ("log-level", McpRule::LogLevel),
    ("log-requested", McpRule::LogRequested),
    ("list-changed", McpRule::ListChanged),
    ("result-type", McpRule::ResultType),
    ("cache-hints", McpRule::CacheHints),
    ("server-info", McpRule::ServerInfo),
    ("reserved-code", McpRule::ReservedCode),
    ("subscription", McpRule::Subscription),
    ("content-type", McpRule::ContentType),
    ("session-id", McpRule::SessionId),
    ("session-unique", McpRule::SessionUnique),
    ("list-shape", McpRule::ListShape),
    ("tool-schema", McpRule::ToolSchema),
    ("unique-names", McpRule::UniqueNames),
    ("cursor-loop", McpRule::CursorLoop),
    ("page-scope", McpRule::PageScope),
    ("supported-versions", McpRule::SupportedVersions),
];

impl McpRule {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let known = || NAMES.map(|(name, _)| name).join(", ");
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, rule)| *rule)
            .ok_or_else(|| format!("unknown rule {name:?}; choose {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_one_name() {
        for (name, rule) in NAMES {
            assert_eq!(McpRule::parse(name), Ok(rule));
        }
        assert!(McpRule::parse("jsn").unwrap_err().contains("choose json, envelope"));
    }
}
