//! typescript-language-server, from Node's packages.

use antiphon_lsp::types::{ExecuteCommandParams, LspAny};
use serde_json::json;

use super::editor::{Project, parsed};
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
    let mut project = start().await;
    project.open("a.ts", "typescript", TEXT).await;
    let wrong = project.diagnostics("a.ts", |messages| !messages.is_empty()).await;
    assert_eq!(wrong, ["Cannot find name 'coun'. Did you mean 'count'?"]);
    assert!(project.hover("a.ts", 0, 7).await.contains("const count: number"));
    let completions = project.completions("a.ts", 1, 22).await;
    assert!(completions.iter().any(|label| label == "count"), "{completions:?}");
    project.edit("a.ts", 2, (1, 18, 22), "count").await;
    project.diagnostics("a.ts", <[_]>::is_empty).await;
    assert!(project.hover("a.ts", 1, 19).await.contains("const count: number"));
    project.shutdown().await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = start().await;
    project.open("a.ts", "typescript", TEXT).await;
    let question = project.seen("workspace/configuration", |_| true).await;
    assert_eq!(question["items"][0]["section"], "formattingOptions");
    let created = project.seen("window/workDoneProgress/create", |_| true).await;
    for kind in ["begin", "end"] {
        let progress = project.seen("$/progress", |params| params["value"]["kind"] == kind).await;
        assert_eq!(progress["token"], created["token"]);
    }
    let registered = project.seen("client/registerCapability", |_| true).await;
    let method = &registered["registrations"][0]["method"];
    assert_eq!(method, "workspace/didChangeWatchedFiles", "{registered}");
    project.shutdown().await;
}

/// The server answers the command after it has our answer to its own request.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_command_that_edits_through_us() {
    let mut project = start().await;
    project.open("a.ts", "typescript", "import { b } from './other';\n").await;
    let path = project.folder().join("a.ts");
    let params: ExecuteCommandParams =
        parsed(json!({"command": "_typescript.organizeImports", "arguments": [path]}));
    within(project.server().execute_command(params).into_future()).await.unwrap();
    let edit = project.seen("workspace/applyEdit", |_| true).await.to_string();
    assert!(edit.contains(&project.uri("a.ts").0) && edit.contains(r#""newText":"""#), "{edit}");
    project.shutdown().await;
}
