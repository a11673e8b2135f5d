//! The default rules of each dialect.
//!
//! They are truthful: this client has no editor, so it applies no edits and shows no dialogs. For language servers,
//! they equal those of `antiphon_lsp::ServerSession`.

use std::path::Path;

use antiphon::RawJson;
use serde_json::{Value, json};

use super::Rule;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::handshake::document::folder;

/// Returns the rules of a dialect.
pub(super) fn rules(
    dialect: Option<DialectName>,
    root: Option<&Path>,
) -> Result<Vec<Rule>, CommandError> {
    match dialect {
        Some(DialectName::Lsp) => lsp(root.unwrap_or(Path::new("."))),
        Some(DialectName::Mcp) => mcp(root),
        _ => Ok(Vec::new()),
    }
}

fn lsp(root: &Path) -> Result<Vec<Rule>, CommandError> {
    let refused = json!({ "applied": false, "failureReason": "this client applies no edits" });
    let answers = [
        ("window/workDoneProgress/create", Value::Null),
        ("client/registerCapability", Value::Null),
        ("client/unregisterCapability", Value::Null),
        ("workspace/workspaceFolders", json!([folder(root)?])),
        ("workspace/applyEdit", refused),
        ("window/showMessageRequest", Value::Null),
        ("window/showDocument", json!({ "success": false })),
        ("workspace/codeLens/refresh", Value::Null),
        ("workspace/diagnostic/refresh", Value::Null),
        ("workspace/foldingRange/refresh", Value::Null),
        ("workspace/inlayHint/refresh", Value::Null),
        ("workspace/inlineValue/refresh", Value::Null),
        ("workspace/semanticTokens/refresh", Value::Null),
        ("workspace/textDocumentContent/refresh", Value::Null),
    ];
    let rules = answers.into_iter().map(rule).collect::<Result<Vec<_>, _>>();
    rules.map(|rules| [rules, vec![Rule::null_per_item("workspace/configuration")]].concat())
}

/// Returns the rules of MCP. A root is offered only with `--root`.
fn mcp(root: Option<&Path>) -> Result<Vec<Rule>, CommandError> {
    let mut rules = vec![rule(("ping", json!({})))?];
    if let Some(root) = root {
        rules.push(rule(("roots/list", json!({ "roots": [folder(root)?] })))?);
    }
    Ok(rules)
}

fn rule((method, result): (&'static str, Value)) -> Result<Rule, CommandError> {
    let result =
        RawJson::encode(&result).map_err(|fault| CommandError::usage(fault.to_string()))?;
    Ok(Rule::result(method, result))
}
