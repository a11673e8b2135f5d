//! clangd, from LLVM.

use antiphon_lsp::types::{
    CodeActionParams, CodeActionResponse, ExecuteCommandParams, WorkDoneProgressParams,
};
use serde_json::json;

use super::editor::{Project, parsed};
use crate::raw_editor::within;

/// The position of `coun` counts the emoji as two units.
const TEXT: &str = "int count;\nint main(void) { /* 😀 */ return coun; }\n";

/// With a compilation database, clangd indexes the project, and shows the progress.
const COMMANDS: &str =
    r#"[{"directory": "FOLDER", "arguments": ["cc", "-c", "a.c"], "file": "a.c"}]"#;

async fn start() -> Project {
    let files = [("compile_commands.json", COMMANDS), ("a.c", "int indexed(void) { return 1; }\n")];
    Project::start(&["clangd", "--log=error"], json!({}), &files).await
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn every_step_of_a_session() {
    let mut project = start().await;
    assert_eq!(project.session().server_info().unwrap().name, "clangd");
    project.open("b.c", "c", TEXT).await;
    let wrong = project.diagnostics("b.c", |_| true).await;
    assert!(
        wrong.iter().any(|message| message.contains("undeclared identifier 'coun'")),
        "{wrong:?}"
    );
    assert!(project.hover("b.c", 0, 5).await.contains("variable count"));
    let completions = project.completions("b.c", 1, 37).await;
    assert!(completions.iter().any(|label| label.trim() == "count"), "{completions:?}");
    project.edit("b.c", 2, (1, 33, 37), "count").await;
    project.diagnostics("b.c", <[_]>::is_empty).await;
    assert!(project.hover("b.c", 1, 34).await.contains("variable count"));
    project.shutdown().await;
}

/// The index of the project, and highlighting that depends on it. clangd sends `"params": null`.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = start().await;
    project.open("b.c", "c", TEXT).await;
    let created = project.seen("window/workDoneProgress/create", |_| true).await;
    for kind in ["begin", "end"] {
        let progress = project.seen("$/progress", |params| params["value"]["kind"] == kind).await;
        assert_eq!(progress["token"], created["token"]);
    }
    project.seen("workspace/semanticTokens/refresh", |_| true).await;
    project.shutdown().await;
}

/// clangd answers the command after it has our answer to its own request.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_command_that_edits_through_us() {
    let mut project = start().await;
    project.open("b.c", "c", TEXT).await;
    let published = project.seen("textDocument/publishDiagnostics", |params| {
        !params["diagnostics"].as_array().unwrap().is_empty()
    });
    let diagnostics = published.await["diagnostics"].clone();
    let params: CodeActionParams = parsed(json!({
        "textDocument": {"uri": project.uri("b.c")},
        "range": diagnostics[0]["range"],
        "context": {"diagnostics": [diagnostics[0]]},
    }));
    let actions = within(project.server().code_action(params).into_future()).await.unwrap();
    let command = actions.unwrap().into_iter().find_map(|action| match action {
        CodeActionResponse::Command(command) if command.title.contains("count") => Some(command),
        _ => None,
    });
    let command = command.unwrap();
    let params = ExecuteCommandParams {
        command: command.command,
        arguments: command.arguments,
        work_done_progress_params: WorkDoneProgressParams::default(),
    };
    within(project.server().execute_command(params).into_future()).await.unwrap();
    let edit = project.seen("workspace/applyEdit", |_| true).await;
    let change = &edit["edit"]["changes"][project.uri("b.c").0][0];
    assert_eq!(change["newText"], "count");
    assert_eq!(change["range"]["start"], json!({"line": 1, "character": 33}));
    project.shutdown().await;
}
