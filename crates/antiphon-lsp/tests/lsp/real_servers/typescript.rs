//! typescript-language-server, from Node's packages.

use antiphon_lsp::types::{ExecuteCommandParams, LspAny, TextEdit};
use serde_json::json;

use super::editor::{Project, messages, parsed, range};
use crate::raw_editor::within;
use crate::scratch::interop;

/// The position of `coun` counts the emoji as two units.
const TEXT: &str = "const count: number = 1;\nconsole.log('😀', coun);\n";

async fn start() -> Project {
    let program = interop("node_modules/typescript-language-server/lib/cli.mjs");
    // Without a download of type definitions.
    let options: LspAny = json!({
        "disableAutomaticTypingAcquisition": true,
        "tsserver": {"useClientFileWatcher": true},
    });
    let files = [("tsconfig.json", "{}"), ("a.ts", ""), ("other.ts", "export const b = 1;\n")];
    Project::start(&["node", &program, "--stdio"], options, &files).await
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn every_step_of_a_session() {
    let project = start().await;
    let mut document = project.open("a.ts", "typescript", TEXT).await;
    let wrong = project.diagnostics(&document, |messages| !messages.is_empty()).await;
    assert_eq!(messages(&wrong), ["Cannot find name 'coun'. Did you mean 'count'?"]);
    assert!(project.hover(&document, (0, 7)).await.contains("const count: number"));
    let completions = project.completions(&document, (1, 22)).await;
    assert!(completions.iter().any(|label| label == "count"), "{completions:?}");
    document.edit(range(1, 18, 22), "count").await.unwrap();
    project.diagnostics(&document, <[_]>::is_empty).await;
    assert!(project.hover(&document, (1, 19)).await.contains("const count: number"));
    project.shutdown().await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = start().await;
    let _document = project.open("a.ts", "typescript", TEXT).await;
    let question = project.asked("workspace/configuration").await;
    assert_eq!(question["items"][0]["section"], "formattingOptions");
    let token = project.progress().await;
    assert_eq!(project.asked("window/workDoneProgress/create").await["token"], token);
    let registered = project.asked("client/registerCapability").await;
    let method = &registered["registrations"][0]["method"];
    assert_eq!(method, "workspace/didChangeWatchedFiles", "{registered}");
    project.shutdown().await;
}

/// The server answers the command after it has our answer to its own request.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_command_that_edits_through_us() {
    let mut project = start().await;
    let mut document =
        project.open("a.ts", "typescript", "import { b } from './other';\nlet a;\n").await;
    let path = project.folder().join("a.ts");
    let params: ExecuteCommandParams =
        parsed(json!({"command": "_typescript.organizeImports", "arguments": [path]}));
    within(project.server().execute_command(params).into_future()).await.unwrap();
    let asked = project.asked("workspace/applyEdit").await;
    let edits: Vec<TextEdit> = parsed(asked["edit"]["changes"][&document.uri().0].clone());
    document.apply(&edits).await.unwrap();
    assert_eq!(document.snapshot().as_str(), "let a;\n");
    project.shutdown().await;
}
