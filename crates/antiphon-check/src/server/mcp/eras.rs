//! Finds the eras that a server speaks, and its features in each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lists::{ListReader, PROMPTS, RESOURCES, TOOLS};
use super::tool::{self, HarmlessTool};
use super::{MODERN, McpClient, McpFeatures, Violations, params};
use crate::raw::AddressProtocol;
use crate::server::connection::ServerConnection;
use crate::server::methods::ServerMethods;
use crate::server::server_access::ServerAccess;
use crate::transcript::json::{Json, JsonValue};
use crate::transcript::{McpEra, McpRule};

/// The slowest start that the wait for `server/discover` adapts to.
const SLOW_START: Duration = Duration::from_secs(5);

/// An era that the server speaks.
pub(in crate::server) struct FoundEra {
    pub(in crate::server) client: McpClient,
    pub(in crate::server) methods: ServerMethods,
}

/// Finds the eras of the server, the legacy one first. `named` is a call of a tool that the user allows.
pub(in crate::server) async fn find_eras(
    access: &mut ServerAccess,
    named: Option<(String, String)>,
) -> Result<Vec<FoundEra>, String> {
    let named = named.map(|(_, params)| Json::parse(&params)).transpose()?;
    let violations = Arc::new(Violations::default());
    let client = |era| McpClient { era, capabilities: None, violations: Arc::clone(&violations) };
    let mut found = Vec::new();
    access.mcp = Some(client(McpEra::Legacy));
    let begun = Instant::now();
    let mut connection = access.connect(false).await?;
    let legacy = access.mcp_handshake(&mut connection).await;
    let start = begun.elapsed();
    access.mcp = Some(client(McpEra::Modern));
    let modern = discover(access, start).await;
    access.mcp = Some(client(McpEra::Legacy));
    if let Ok(result) = &legacy {
        let version = result
            .member("protocolVersion")
            .map_or_else(String::new, |version| version.lossy().into_owned());
        let capabilities = result.member("capabilities");
        let mut features = McpFeatures::new(McpEra::Legacy, &version, capabilities);
        features.start = start;
        add_session(access, &connection, &mut features).await;
        let era = Exploration { access, era: McpEra::Legacy, named: named.as_ref() };
        let methods = era.methods(&mut connection, features).await?;
        found.push(FoundEra { client: client(McpEra::Legacy), methods });
    }
    connection.close().await;
    match (modern, legacy) {
        (Ok(result), legacy) => {
            let capabilities = result.member("capabilities").cloned();
            let mut features = McpFeatures::new(McpEra::Modern, MODERN, capabilities.as_ref());
            features.start = start;
            if legacy.is_err() {
                features.add("no-legacy");
            }
            let modern = McpClient { capabilities, ..client(McpEra::Modern) };
            check_versions(&modern, &result);
            access.mcp = Some(modern.clone());
            let mut connection = access.dial().await?;
            let era = Exploration { access, era: McpEra::Modern, named: named.as_ref() };
            let methods = era.methods(&mut connection, features).await?;
            connection.close().await;
            found.push(FoundEra { client: modern, methods });
        }
        (Err(modern), Err(legacy)) => return Err(format!("{legacy}; {modern}")),
        (Err(_), Ok(_)) => {}
    }
    Ok(found)
}

/// Calls `server/discover`. `start` is how long the server took for the first response. A legacy server may ignore it.
async fn discover(access: &ServerAccess, start: Duration) -> Result<Json, String> {
    let mut connection = access.connect(false).await?;
    let request = access.request("\"server/discover\"", &params(McpEra::Modern, &[]));
    let reply_timeout = access.timing.full_timeout().max(2 * start.min(SLOW_START));
    let reply = access.reply_within(&mut connection, request, reply_timeout).await;
    connection.close().await;
    let reply = reply.map_err(|fault| format!("server/discover: {fault}"))?;
    match reply.member("result") {
        Some(result) => Ok(result.clone()),
        None => Err(format!("`server/discover` returns {reply}")),
    }
}

/// Adds whether the server assigns sessions, and lets clients end them.
async fn add_session(
    access: &ServerAccess,
    connection: &ServerConnection,
    features: &mut McpFeatures,
) {
    let session = |connection: &ServerConnection| {
        connection.mcp.as_ref().and_then(|mcp| mcp.headers.session.clone())
    };
    if session(connection).is_none() {
        return;
    }
    features.add("session");
    let AddressProtocol::Http { path, host } = &access.target.address.protocol else { return };
    let Ok(mut other) = access.dial().await else { return };
    if other.is_over() {
        return;
    }
    other.line(format!("DELETE {path} HTTP/1.1\r\n").as_bytes()).await;
    other.raw(format!("host: {host}\r\n\r\n").as_bytes()).await;
    if let Ok(Ok(response)) = access.next_response(&mut other).await
        && (200..300).contains(&response.status)
    {
        features.add("delete");
    }
}

fn check_versions(client: &McpClient, result: &Json) {
    let versions = match result.member("supportedVersions").map(|versions| &versions.value) {
        Some(JsonValue::Array(versions)) => versions.iter().any(|version| version.is_text(MODERN)),
        _ => false,
    };
    if !versions {
        let what = format!("supportedVersions does not contain {MODERN}, which the server accepts");
        let message = result.text().as_bytes();
        client.violations.add(McpRule::SupportedVersions, McpEra::Modern, what, message);
    }
}

/// The search for the features of one era.
struct Exploration<'a> {
    access: &'a ServerAccess,
    era: McpEra,
    named: Option<&'a Json>,
}

impl Exploration<'_> {
    async fn methods(
        &self,
        connection: &mut ServerConnection,
        mut features: McpFeatures,
    ) -> Result<ServerMethods, String> {
        if self.access.target.is_loopback() {
            features.add("loopback");
        }
        let call = match self.era {
            McpEra::Legacy => ("ping".to_owned(), "{}".to_owned()),
            McpEra::Modern => ("server/discover".to_owned(), params(self.era, &[])),
        };
        let called = Instant::now();
        let reply = self.access.call(connection, &call.0, &call.1).await?;
        let took = called.elapsed();
        if reply.member("result").is_none() {
            return Err(format!("`{}` returns {reply}", call.0));
        }
        self.add_primitives(connection, &mut features).await;
        Ok(ServerMethods::of_mcp(call, took, features))
    }

    /// Adds what the lists of the server offer.
    async fn add_primitives(&self, connection: &mut ServerConnection, features: &mut McpFeatures) {
        let Some(client) = &self.access.mcp else { return };
        let lists =
            ListReader { access: self.access, era: self.era, violations: &client.violations };
        if features.has("tools") {
            let tools = lists.read(connection, &TOOLS).await;
            lists.check_tools(&tools);
            self.add_tool(connection, features, &tools).await;
        }
        if features.has("resources") {
            let resources = lists.read(connection, &RESOURCES).await;
            if let Some(uri) = resources.first().and_then(|resource| resource.member("uri")) {
                features.add("resource");
                features.bind("resource", uri.text().to_owned());
            }
        }
        if features.has("prompts") {
            let prompts = lists.read(connection, &PROMPTS).await;
            let plain = prompts.iter().find(|prompt| !needs_arguments(prompt));
            if let Some(name) = plain.and_then(|prompt| prompt.member("name")) {
                features.add("prompt");
                features.bind("prompt", name.text().to_owned());
            }
        }
    }

    /// Calls tools until one returns a result, and adds it.
    async fn add_tool(
        &self,
        connection: &mut ServerConnection,
        features: &mut McpFeatures,
        tools: &[Json],
    ) {
        let candidates = match self.named {
            Some(named) => tool::named(tools, named).into_iter().collect(),
            None => tool::harmless(tools),
        };
        if let Some(strict) = candidates.iter().find(|tool| tool.has_required) {
            features.add("strict-tool");
            features.bind("strict-tool", strict.name.text().to_owned());
        }
        for HarmlessTool { name, arguments, .. } in candidates.iter().take(4) {
            let members = [
                format!(r#""name":{name}"#, name = name.text()),
                format!(r#""arguments":{arguments}"#),
            ];
            let params = params(self.era, &[&members[0], &members[1]]);
            let called = Instant::now();
            let request = self.access.request("\"tools/call\"", &params);
            let most = self.access.timing.start_timeout();
            let reply = self.access.reply_within(connection, request, most).await;
            if reply.is_ok_and(|reply| reply.member("result").is_some()) {
                features.set_tool(name, arguments, called.elapsed());
                return;
            }
        }
    }
}

fn needs_arguments(prompt: &Json) -> bool {
    let Some(JsonValue::Array(arguments)) = prompt.member("arguments").map(|found| &found.value)
    else {
        return false;
    };
    arguments.iter().any(|argument| {
        argument.member("required").is_some_and(|required| required.text() == "true")
    })
}
