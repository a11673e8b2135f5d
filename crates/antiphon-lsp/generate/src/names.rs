//! The Rust name of each method. It equals the name in `tower-lsp`, if `tower-lsp` has the method.

/// Methods whose name does not follow the rule.
const EXCEPTIONS: [(&str, &str); 15] = [
    ("textDocument/declaration", "goto_declaration"),
    ("textDocument/definition", "goto_definition"),
    ("textDocument/typeDefinition", "goto_type_definition"),
    ("textDocument/implementation", "goto_implementation"),
    ("completionItem/resolve", "completion_resolve"),
    ("workspaceSymbol/resolve", "symbol_resolve"),
    ("workspace/diagnostic", "workspace_diagnostic"),
    ("workspace/diagnostic/refresh", "workspace_diagnostic_refresh"),
    ("callHierarchy/incomingCalls", "incoming_calls"),
    ("callHierarchy/outgoingCalls", "outgoing_calls"),
    ("typeHierarchy/supertypes", "supertypes"),
    ("typeHierarchy/subtypes", "subtypes"),
    ("window/workDoneProgress/cancel", "work_done_progress_cancel"),
    ("window/workDoneProgress/create", "work_done_progress_create"),
    ("telemetry/event", "telemetry_event"),
];

/// The namespaces that are not part of the Rust name.
const SILENT: [&str; 5] = ["textDocument", "workspace", "window", "client", "$"];

/// Returns the name of the method in the contracts.
pub fn rust_name(method: &str) -> String {
    if let Some((_, name)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == method) {
        return (*name).to_owned();
    }
    let (first, rest) = method.split_once('/').unwrap_or(("$", method));
    let namespace = match first {
        silent if SILENT.contains(&silent) => String::new(),
        "notebookDocument" => "notebook_".to_owned(),
        other => snake_case(other) + "_",
    };
    namespace + &rest.split('/').map(snake_case).collect::<Vec<_>>().join("_")
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
