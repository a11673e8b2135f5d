//! clangd, from LLVM.

use antiphon_lsp::types::{
    CodeActionParams, CodeActionResponse, ExecuteCommandParams, TextEdit, WorkDoneProgressParams,
};
use serde_json::json;

use super::editor::{Project, messages, parsed, range};
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
    let project = start().await;
    assert_eq!(project.session().server_info().unwrap().name, "clangd");
    let mut document = project.open("b.c", "c", TEXT).await;
    let wrong = within(document.diagnostics()).await.unwrap().diagnostics;
    assert!(messages(&wrong).concat().contains("undeclared identifier 'coun'"), "{wrong:?}");
    assert!(project.hover(&document, (0, 5)).await.contains("variable count"));
    let completions = project.completions(&document, (1, 37)).await;
    assert!(completions.iter().any(|label| label.trim() == "count"), "{completions:?}");
    document.edit(range(1, 33, 37), "count").await.unwrap();
    assert_eq!(within(document.diagnostics()).await.unwrap().diagnostics, []);
    assert!(project.hover(&document, (1, 34)).await.contains("variable count"));
    document.close().await.unwrap();
    project.shutdown().await;
}

/// clangd encodes these characters in another way than `file_uri`.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_file_name_that_it_encodes_in_its_own_way() {
    let project = start().await;
    let document = project.open("x:y+@,()=&'.c", "c", "int x = y;\n").await;
    let found = within(document.diagnostics()).await.unwrap();
    assert!(messages(&found.diagnostics).concat().contains("'y'"), "{found:?}");
    assert!(found.uri != *document.uri() && document.has_uri(&found.uri), "{found:?}");
    assert_eq!(project.session().diagnostics_of(document.uri()), Some(found));
    project.shutdown().await;
}

/// The index of the project, and highlighting that depends on it. clangd sends `"params": null`.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = start().await;
    let _document = project.open("b.c", "c", TEXT).await;
    let token = project.progress().await;
    assert_eq!(project.asked("window/workDoneProgress/create").await["token"], token);
    project.asked("workspace/semanticTokens/refresh").await;
    project.shutdown().await;
}

/// clangd answers the command after it has our answer to its own request.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_command_that_edits_through_us() {
    let mut project = start().await;
    let mut document = project.open("b.c", "c", TEXT).await;
    let wrong = project.diagnostics(&document, |messages| !messages.is_empty()).await;
    let params: CodeActionParams = parsed(json!({
        "textDocument": document.identifier(),
        "range": wrong[0].range,
        "context": {"diagnostics": [wrong[0]]},
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
    let asked = project.asked("workspace/applyEdit").await;
    let edits: Vec<TextEdit> = parsed(asked["edit"]["changes"][&document.uri().0].clone());
    document.apply(&edits).await.unwrap();
    assert_eq!(document.snapshot().as_str(), TEXT.replace("coun;", "count;"));
    assert_eq!(within(document.diagnostics()).await.unwrap().diagnostics, []);
    project.shutdown().await;
}
