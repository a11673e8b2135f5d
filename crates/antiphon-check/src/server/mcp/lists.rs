//! Reads the lists of a server to their end, and checks their shape.

use std::collections::HashSet;

use super::{Violations, params};
use crate::server::connection::ServerConnection;
use crate::server::server_access::ServerAccess;
use crate::transcript::json::{Json, JsonValue};
use crate::transcript::{McpEra, McpRule};

/// The limit of pages of one list.
const MAX_PAGES: usize = 100;

/// A list of the protocol: its method, its member, and the members that each entry must have.
pub(super) struct ListMethod {
    pub(super) method: &'static str,
    member: &'static str,
    entry: &'static [&'static str],
}

pub(super) const TOOLS: ListMethod =
    ListMethod { method: "tools/list", member: "tools", entry: &["name"] };
pub(super) const PROMPTS: ListMethod =
    ListMethod { method: "prompts/list", member: "prompts", entry: &["name"] };
pub(super) const RESOURCES: ListMethod =
    ListMethod { method: "resources/list", member: "resources", entry: &["uri", "name"] };

/// Reads a list and checks it.
pub(super) struct ListReader<'a> {
    pub(super) access: &'a ServerAccess,
    pub(super) era: McpEra,
    pub(super) violations: &'a Violations,
}

impl ListReader<'_> {
    /// Returns the entries of all pages.
    pub(super) async fn read(
        &self,
        connection: &mut ServerConnection,
        list: &ListMethod,
    ) -> Vec<Json> {
        let (mut entries, mut cursors) = (Vec::new(), HashSet::new());
        let (mut cursor, mut scope) = (None, None);
        for _ in 0..MAX_PAGES {
            let Some(page) = self.page(connection, list, cursor.as_deref()).await else { break };
            entries.extend(self.entries(&page, list));
            let found = page.member("cacheScope").cloned();
            if scope.get_or_insert_with(|| found.clone()) != &found {
                let what = format!("the pages of {} have different cache scopes", list.method);
                self.add(McpRule::PageScope, what, &page);
            }
            let Some(next) = page.member("nextCursor").filter(|next| next.text() != "null") else {
                return entries;
            };
            if !next.is_string() {
                let what = format!("the nextCursor of {} is not a String", list.method);
                self.add(McpRule::ListShape, what, &page);
                return entries;
            }
            cursor = Some(next.text().to_owned());
            if !cursors.insert(next.text().to_owned()) {
                let what = format!("{} returns the cursor {next} twice", list.method);
                self.add(McpRule::CursorLoop, what, &page);
                return entries;
            }
        }
        entries
    }

    async fn page(
        &self,
        connection: &mut ServerConnection,
        list: &ListMethod,
        cursor: Option<&str>,
    ) -> Option<Json> {
        let cursor = cursor.map(|cursor| format!(r#""cursor":{cursor}"#));
        let params = params(self.era, &cursor.as_deref().into_iter().collect::<Vec<_>>());
        let reply = self.access.call(connection, list.method, &params).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(fault) => {
                let what =
                    format!("the capability is declared, but {} fails: {fault}", list.method);
                self.violations.add(McpRule::ListShape, self.era, what, b"");
                return None;
            }
        };
        let result = reply.member("result").cloned();
        if result.is_none() {
            let what = format!("the capability is declared, but {} returns an error", list.method);
            self.add(McpRule::ListShape, what, &reply);
        }
        result
    }

    fn entries(&self, page: &Json, list: &ListMethod) -> Vec<Json> {
        let found = page.member(list.member).map(|found| &found.value);
        let Some(JsonValue::Array(entries)) = found else {
            let what = format!("the result of {} has no Array `{}`", list.method, list.member);
            self.add(McpRule::ListShape, what, page);
            return Vec::new();
        };
        for entry in &**entries {
            let is_missing = |name: &&&str| !entry.member(name).is_some_and(Json::is_string);
            if let Some(name) = list.entry.iter().find(is_missing) {
                let what = format!("an entry of {} has no String `{name}`", list.method);
                self.add(McpRule::ListShape, what, entry);
            }
        }
        entries.to_vec()
    }

    /// Checks the schemas and the names of the tools.
    pub(super) fn check_tools(&self, tools: &[Json]) {
        let mut names = HashSet::new();
        for tool in tools {
            let kind = tool.member("inputSchema").and_then(|schema| schema.member("type"));
            if !kind.is_some_and(|kind| kind.is_text("object")) {
                let what = "the inputSchema of a tool has no `\"type\":\"object\"`";
                self.add(McpRule::ToolSchema, what.to_owned(), tool);
            }
            if let Some(name) = tool.member("name").filter(|name| !names.insert(name.lossy())) {
                self.add(McpRule::UniqueNames, format!("two tools have the name {name}"), tool);
            }
        }
    }

    fn add(&self, rule: McpRule, what: String, message: &Json) {
        self.violations.add(rule, self.era, what, message.text().as_bytes());
    }
}
