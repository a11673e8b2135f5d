//! Sessions with servers of other projects.

use serde_json::Value;

use super::session;
use crate::interop::script;
use crate::support::{Ended, Scratch, antiphon, run};

const SOURCE: &str = "int add(int a, int b) { return a + b; }\nint x = add(1, 2);\nint y = zzz;\n";

fn parsed(ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs interop/setup"]
fn clangd_gives_diagnostics_hover_and_a_definition() {
    let scratch = Scratch::new();
    let file = scratch.path("main.c");
    std::fs::write(&file, SOURCE).unwrap();
    let file = file.display();
    let lines = format!(
        "doc = open {file}
        wait textDocument/publishDiagnostics uri=$doc.uri
        textDocument/hover --at {file}:1:5
        place = textDocument/definition --at {file}:2:9
        textDocument/documentHighlight textDocument:={{\"uri\": $place[0].uri}} position:=$place[0].range.start"
    );
    let words = ["--dialect", "lsp", "--timeout", "60s"];
    let printed = parsed(&session("exec:clangd --log=error", &words, &lines));
    let [diagnostics, hover, highlights] = &printed[..] else { panic!("{printed:?}") };
    let said = diagnostics["diagnostics"].to_string();
    assert!(said.contains("zzz"), "{diagnostics}");
    assert!(hover["contents"]["value"].as_str().unwrap().contains("int add(int a, int b)"));
    // The definition, and the call in line 2.
    assert_eq!(highlights.as_array().unwrap().len(), 2, "{highlights}");
}

#[test]
#[ignore = "needs interop/setup"]
fn clangd_hovers_after_one_document_is_open() {
    let scratch = Scratch::new();
    let file = scratch.path("main.c");
    std::fs::write(&file, SOURCE).unwrap();
    let open = format!("open {}", file.display());
    let params = format!(
        "textDocument:={{\"uri\":\"file://{}\"}}",
        std::fs::canonicalize(&file).unwrap().display()
    );
    let words = [
        "call",
        "--dialect",
        "lsp",
        "exec+header:clangd --log=error",
        "textDocument/hover",
        "--init",
        &open,
        &params,
        "position:={\"line\":1,\"character\":8}",
    ];
    let hover = parsed(&run(antiphon().args(words), b"")).remove(0);
    assert!(hover["contents"]["value"].as_str().unwrap().contains("int add(int a, int b)"));
}

#[test]
#[ignore = "needs interop/setup"]
fn pylsp_gives_symbols_and_sees_a_new_text() {
    let scratch = Scratch::new();
    let file = scratch.path("main.py");
    std::fs::write(&file, "def total(a):\n    return a\n").unwrap();
    let file = file.display();
    let lines = format!(
        "doc = open {file}
        textDocument/documentSymbol textDocument:={{\"uri\": $doc.uri}}
        wait textDocument/publishDiagnostics
        notify textDocument/didChange textDocument:={{\"uri\": $doc.uri, \"version\": 2}} contentChanges:=[{{\"text\": \"def (\"}}]
        wait textDocument/publishDiagnostics"
    );
    let server = format!("exec:{}", script(".venv/bin/pylsp").display());
    let printed = parsed(&session(&server, &["--dialect", "lsp", "--timeout", "60s"], &lines));
    let [symbols, before, after] = &printed[..] else { panic!("{printed:?}") };
    assert_eq!(symbols[0]["name"], "total", "{symbols}");
    assert_eq!(before["diagnostics"], serde_json::json!([]));
    assert_ne!(after["diagnostics"], serde_json::json!([]));
}

#[test]
#[ignore = "needs interop/setup"]
fn the_reference_server_of_mcp_calls_tools() {
    let server = script("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let endpoint = format!("exec:node '{}' stdio", server.display());
    let lines = r#"
        tools = tools/list
        $tools.tools[0].name
        tools/call name=$_ arguments:={"message": "hello"}
    "#;
    let printed = parsed(&session(&endpoint, &["--dialect", "mcp", "--timeout", "60s"], lines));
    let [name, echoed] = &printed[..] else { panic!("{printed:?}") };
    assert_eq!(name, "echo");
    assert_eq!(echoed["content"][0]["text"], "Echo: hello");
}
