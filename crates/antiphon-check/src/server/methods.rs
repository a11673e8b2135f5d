//! Finds the methods of the server that the suite can call.
//!
//! The suite cannot know the methods of a server. One ordinary method is enough for most cases: one
//! that the user names, an example of the specification, or one that the server describes and that
//! looks harmless. The run probes for the other methods of the suite, one by one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::connection::ServerConnection;
use super::mcp::McpFeatures;
use super::server_access::{ServerAccess, quoted};
use crate::transcript::json::{Json, JsonValue};
use crate::transcript::{Bindings, CaseStep, Profile, TranscriptCase};

/// The method of OpenRPC that describes a server.
const DISCOVER: &str = "rpc.discover";

/// The methods of the server that the suite can call.
#[derive(Clone, Debug)]
pub(crate) struct ServerMethods {
    /// A method that returns a result; if none is known, a method that no server has.
    pub(crate) method: String,
    /// Valid params of it.
    pub(crate) params: String,
    /// Its result, if it is always the same.
    result: Option<String>,
    /// The server has `method`.
    pub(crate) has_method: bool,
    /// The duration of a call of it.
    pub(crate) took: Duration,
    /// A case may call `method` by its name: the user wrote the cases for this server.
    allows_name: bool,
    /// The methods of the suite that the server has.
    has: BTreeSet<&'static str>,
    /// The features of an MCP server.
    pub(crate) mcp: Option<McpFeatures>,
}

/// The methods that cases call by name: params, and the reply that shows that the server has it.
const KNOWN: [(&str, &str, ExpectedReply); 12] = [
    ("subtract", "[42,23]", ExpectedReply::Result("19")),
    ("sum", "[1,2,4]", ExpectedReply::Result("7")),
    ("get_data", "[]", ExpectedReply::Result(r#"["hello",5]"#)),
    ("echo", r#"["probe"]"#, ExpectedReply::Result(r#"["probe"]"#)),
    ("update", "[1]", ExpectedReply::AnyResult),
    ("notify_hello", "[7]", ExpectedReply::AnyResult),
    ("notify_sum", "[1]", ExpectedReply::AnyResult),
    ("whoami", "[]", ExpectedReply::AnyResult),
    ("sleep", "[1]", ExpectedReply::Result("1")),
    ("fail", r#"[7,"no"]"#, ExpectedReply::Code("7")),
    ("panic", "[]", ExpectedReply::Code("-32603")),
    ("call_me_back", "[]", ExpectedReply::Code("-32602")),
];

/// The reply that shows that the server has a method.
enum ExpectedReply {
    Result(&'static str),
    AnyResult,
    Code(&'static str),
}

impl ExpectedReply {
    fn is_in(&self, reply: &Json) -> bool {
        let code = || reply.member("error")?.member("code");
        match self {
            Self::Result(text) => reply
                .member("result")
                .is_some_and(|result| Json::parse(text).as_ref() == Ok(result)),
            Self::AnyResult => reply.member("result").is_some() && reply.member("error").is_none(),
            Self::Code(text) => code().is_some_and(|code| code.text() == *text),
        }
    }
}

impl ServerMethods {
    /// Finds the methods of the server. Fails if the server replies to no call.
    pub(crate) async fn find(
        server_access: &ServerAccess,
        named: Option<(String, String)>,
    ) -> Result<Self, String> {
        let mut connection = Some(server_access.dial().await?);
        let is_named = named.is_some();
        let mut has = BTreeSet::new();
        let mut has_replied = false;
        for (name, params, sign) in &KNOWN {
            // A method may do harm under any name. The others are probed only on a server that has the
            // examples of the specification.
            let examples = ["subtract", "sum", "get_data"];
            let is_likely = examples.iter().filter(|name| has.contains(**name)).count() >= 2;
            let is_example = examples.contains(name) || *name == "echo";
            if !is_example && !is_likely {
                continue;
            }
            if *name == "whoami" && !has.contains("echo") {
                break;
            }
            let reply = call(server_access, &mut connection, name, params).await;
            has_replied |= reply.is_ok();
            let is_ours = reply.is_ok_and(|reply| sign.is_in(&reply));
            if is_ours && (*name != "echo" || echoes(server_access, &mut connection).await) {
                has.insert(*name);
            }
            // A server that ignores the first call may still reply to the method that the user names.
            if !has_replied {
                break;
            }
        }
        let ordinary = match named {
            Some(named) => Some(named),
            None => ordinary(server_access, &mut connection, &has).await,
        };
        let found = Self::with(server_access, &mut connection, ordinary, is_named, has).await;
        if let Some(connection) = connection {
            connection.close().await;
        }
        found
    }

    /// Calls the method twice, to learn its result and its duration.
    async fn with(
        server_access: &ServerAccess,
        connection: &mut Option<ServerConnection>,
        ordinary: Option<(String, String)>,
        is_named: bool,
        has: BTreeSet<&'static str>,
    ) -> Result<Self, String> {
        let has_method = ordinary.is_some();
        let (method, params) =
            ordinary.unwrap_or_else(|| ("antiphon_unknown".to_owned(), "[]".to_owned()));
        let mut took = Duration::ZERO;
        let mut first = None;
        for _ in 0..2 {
            let called = Instant::now();
            let reply = call(server_access, connection, &method, &params).await?;
            took = took.max(called.elapsed());
            first.get_or_insert(reply);
        }
        let first = first.ok_or("no call was made")?;
        if is_named && first.member("result").is_none() {
            let error = first.member("error").unwrap_or(&first);
            return Err(format!("`{method}` returns the error {error}"));
        }
        // The result of any other method may change at any time.
        let is_known = KNOWN[..4].iter().any(|known| (known.0, known.1) == (&*method, &*params));
        let result =
            first.member("result").filter(|_| is_known).map(|result| result.text().to_owned());
        let allows_name = server_access.timing.probe_delays().is_none();
        Ok(Self { method, params, result, has_method, took, allows_name, has, mcp: None })
    }

    /// Returns the ordinary call of an MCP server, and its features.
    pub(super) fn of_mcp(call: (String, String), took: Duration, mcp: McpFeatures) -> Self {
        let (method, params) = call;
        let (result, has) = (None, BTreeSet::new());
        let (has_method, allows_name) = (true, false);
        Self { method, params, result, has_method, took, allows_name, has, mcp: Some(mcp) }
    }

    /// Returns the initial bindings of a case.
    pub(crate) fn bindings(&self) -> Bindings {
        let mut bindings = Bindings::default();
        if self.has_method {
            // Both are valid JSON: one was received, the other was parsed from the command line.
            let _ = bindings.set("method", &quoted(&self.method));
            let _ = bindings.set("params", &self.params);
        }
        if let Some(result) = &self.result {
            let _ = bindings.set("result", result);
        }
        for (name, value) in self.mcp.iter().flat_map(McpFeatures::bindings) {
            let _ = bindings.set(name, value);
        }
        bindings
    }

    /// Checks the reply to the probe.
    pub(crate) fn check_probe(&self, reply: &Json) -> Result<(), String> {
        match (reply.member("result"), &self.result) {
            (Some(found), Some(result)) => {
                if Json::parse(result).as_ref() == Ok(found) {
                    return Ok(());
                }
                Err(format!("{} now returns {found}, but returned {result} before", self.method))
            }
            (Some(_), None) => Ok(()),
            (None, _) if !self.has_method && reply.member("error").is_some() => Ok(()),
            (None, _) => Err(format!("{} now returns {reply}", self.method)),
        }
    }

    /// Describes a method that the case needs and the server does not have.
    pub(crate) fn lacks(&self, case: &TranscriptCase) -> Option<String> {
        let texts = || case.sent().map(|text| &*text.written);
        if !self.has_method && texts().any(|text| text.contains("\"<method>\"")) {
            return Some("a method that returns a result; name one with --method".to_owned());
        }
        if let Some(mcp) = &self.mcp {
            return case.facts.needs.iter().flatten().find_map(|need| mcp.lacks(need));
        }
        let is_meant = |name: &str| self.allows_name && name == self.method;
        let missing = |name: &str| !self.has.contains(name) && !is_meant(name);
        if let Some(needs) = &case.facts.needs {
            return needs.iter().find(|name| missing(name)).map(|name| of_test_service(name));
        }
        if !case.steps.iter().any(asks_for_work) {
            return None;
        }
        let names = texts().flat_map(methods_in);
        names.into_iter().find(|name| missing(name)).map(of_test_service)
    }
}

fn of_test_service(name: &str) -> String {
    format!("the method `{name}` of the test service")
}

/// Checks that `echo` also returns named params, and null without params: a method of this name may do
/// something else.
async fn echoes(server_access: &ServerAccess, connection: &mut Option<ServerConnection>) -> bool {
    let named = call(server_access, connection, "echo", "{}").await;
    let named = named.is_ok_and(|reply| ExpectedReply::Result("{}").is_in(&reply));
    let mut open = match connection.take() {
        Some(open) => open,
        None => match server_access.dial().await {
            Ok(open) => open,
            Err(_) => return false,
        },
    };
    let none = server_access.call_without_params(&mut open, "echo").await;
    *connection = none.is_ok().then_some(open);
    // A case of the suite reports a server that leaves out a null result.
    let is_null = |reply: &Json| match reply.member("result") {
        Some(result) => result.text() == "null",
        None => reply.member("error").is_none(),
    };
    named && none.is_ok_and(|reply| is_null(&reply))
}

/// Calls a method, on a new connection if the last one was closed.
async fn call(
    server_access: &ServerAccess,
    connection: &mut Option<ServerConnection>,
    method: &str,
    params: &str,
) -> Result<Json, String> {
    let was_used = connection.is_some();
    let mut open = match connection.take() {
        Some(open) => open,
        None => server_access.dial().await?,
    };
    let mut reply = server_access.call(&mut open, method, params).await;
    if reply.is_err() && was_used && open.is_over() {
        // A server may close the connection after a reply.
        open = server_access.dial().await?;
        reply = server_access.call(&mut open, method, params).await;
    }
    if reply.is_ok() {
        *connection = Some(open);
    }
    reply
}

/// Returns a method that returns a result, and its params.
async fn ordinary(
    server_access: &ServerAccess,
    connection: &mut Option<ServerConnection>,
    has: &BTreeSet<&'static str>,
) -> Option<(String, String)> {
    if let Some((name, params, _)) = KNOWN.iter().take(4).find(|(name, ..)| has.contains(name)) {
        return Some(((*name).to_owned(), (*params).to_owned()));
    }
    let custom = match server_access.profile {
        Profile::Plain => described(server_access, connection).await?,
        Profile::Lsp => {
            vec![("workspace/symbol", r#"{"query":""}"#)].into_iter().map(owned).collect()
        }
        Profile::Bitcoin => ["getblockcount", "uptime"].map(|name| owned((name, "[]"))).to_vec(),
        Profile::Mcp => Vec::new(),
        Profile::Ethereum => {
            ["eth_chainId", "web3_clientVersion"].map(|name| owned((name, "[]"))).to_vec()
        }
    };
    for (name, params) in custom {
        let reply = call(server_access, connection, &name, &params).await;
        if reply.is_ok_and(|reply| reply.member("result").is_some()) {
            return Some((name, params));
        }
    }
    None
}

fn owned((name, params): (&str, &str)) -> (String, String) {
    (name.to_owned(), params.to_owned())
}

/// Returns methods that the server describes, that need no params, and whose names sound harmless.
async fn described(
    server_access: &ServerAccess,
    connection: &mut Option<ServerConnection>,
) -> Option<Vec<(String, String)>> {
    let reply = call(server_access, connection, DISCOVER, "[]").await.ok()?;
    let document = reply.member("result")?;
    let JsonValue::Array(methods) = &document.member("methods")?.value else { return None };
    let names = methods.iter().filter_map(|method| {
        let needs_params = match method.member("params").map(|params| &params.value) {
            Some(JsonValue::Array(params)) => params.iter().any(is_required),
            _ => false,
        };
        let name: String = serde_json::from_str(method.member("name")?.text()).ok()?;
        (!needs_params && sounds_harmless(&name)).then_some((name, "[]".to_owned()))
    });
    Some(names.take(8).collect())
}

fn is_required(param: &Json) -> bool {
    param.member("required").is_some_and(|required| required.text() == "true")
}

/// Reports whether a name sounds like a query and not like a command. The suite must not stop the
/// server.
fn sounds_harmless(name: &str) -> bool {
    const QUERIES: [&str; 12] = [
        "get", "list", "ping", "echo", "version", "info", "status", "health", "count", "chainid",
        "time", "name",
    ];
    const COMMANDS: [&str; 14] = [
        "set", "stop", "start", "shut", "delete", "remove", "create", "send", "add", "kill",
        "restart", "write", "clear", "update",
    ];
    let name = name.to_ascii_lowercase();
    QUERIES.iter().any(|word| name.contains(word))
        && !COMMANDS.iter().any(|word| name.contains(word))
}

fn asks_for_work(step: &CaseStep) -> bool {
    match step {
        CaseStep::Expect(expected) => {
            expected.any_of.iter().any(crate::transcript::Pattern::asks_for_work)
        }
        CaseStep::Unordered(patterns) => {
            patterns.iter().any(crate::transcript::Pattern::asks_for_work)
        }
        _ => false,
    }
}

/// Returns the methods of the suite that a text calls.
fn methods_in(text: &str) -> Vec<&'static str> {
    let calls = |name: &str| {
        text.match_indices(&format!("\"{name}\"")).any(|(at, _)| {
            let before = text[..at].trim_end();
            before.strip_suffix(':').is_some_and(|b| b.trim_end().ends_with("\"method\""))
        })
    };
    KNOWN.iter().map(|(name, ..)| *name).filter(|name| calls(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parse;

    fn methods(has: &[&'static str]) -> ServerMethods {
        ServerMethods {
            method: "eth_chainId".into(),
            params: "[]".into(),
            result: None,
            has_method: true,
            took: Duration::ZERO,
            allows_name: false,
            has: has.iter().copied().collect(),
            mcp: None,
        }
    }

    #[test]
    fn what_a_case_needs_is_seen_in_what_it_sends() {
        let lacks = |has: &[&'static str], steps: &str| {
            let case = &parse("g", &format!("@ section 4\n== a: b\n{steps}\n")).unwrap()[0];
            methods(has).lacks(case)
        };
        let echo = "--> {\"method\" : \"echo\",\"id\":1}\n<-- {\"result\":1}";
        assert_eq!(lacks(&[], echo), Some("the method `echo` of the test service".into()));
        assert_eq!(lacks(&["echo"], echo), None);
        assert_eq!(lacks(&[], "--> {\"method\":\"echo\"}\n<-!"), None);
        assert_eq!(
            lacks(&[], "--> {\"method\":\"echo\"}\n<-- {\"error\":{\"code\":-32600}}"),
            None
        );
        assert_eq!(lacks(&[], "--> {\"params\":[\"echo\"]}\n<-- {\"result\":1}"), None);
        assert_eq!(
            lacks(&[], "@ needs sum\n--> 1\n<-!"),
            Some("the method `sum` of the test service".into())
        );
        assert_eq!(
            lacks(&[], "@ needs nothing\n--> {\"method\":\"sum\"}\n<-- {\"result\":1}"),
            None
        );
        let mut nothing = methods(&[]);
        nothing.has_method = false;
        let case =
            &parse("g", "@ section 4\n== a: b\n--> {\"method\":\"<method>\"}\n<-!\n").unwrap()[0];
        assert!(nothing.lacks(case).unwrap().contains("--method"));
    }

    #[test]
    fn only_harmless_names_are_called() {
        for harmless in ["eth_chainId", "getVersion", "system.listMethods", "rpc_ping"] {
            assert!(sounds_harmless(harmless), "{harmless}");
        }
        for not in ["shutdown", "admin_stopServer", "settime", "deleteAll", "subtract"] {
            assert!(!sounds_harmless(not), "{not}");
        }
    }
}
