//! pylsp, from Python's packages.

use serde_json::json;

use super::editor::Project;
use crate::scratch::interop;

/// No emoji: pylsp counts code points, although it agrees on UTF-16.
const TEXT: &str = "import os\nname = os.getcwd()\nprint('ä', nam)\n";

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn every_step_of_a_session() {
    let mut project = Project::start(&[&interop(".venv/bin/pylsp")], json!({}), &[]).await;
    assert_eq!(project.session().server_info().unwrap().name, "pylsp");
    project.open("a.py", "python", TEXT).await;
    assert_eq!(project.diagnostics("a.py", |_| true).await, ["undefined name 'nam'"]);
    assert!(project.hover("a.py", 1, 11).await.contains("getcwd() -> str"));
    let completions = project.completions("a.py", 2, 14).await;
    assert!(completions.iter().any(|label| label == "name"), "{completions:?}");
    project.edit("a.py", 2, (2, 11, 14), "name").await;
    project.diagnostics("a.py", <[_]>::is_empty).await;
    project.shutdown().await;
}

/// pylsp waits for our answer to `create` in the thread of a linter.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = Project::start(&[&interop(".venv/bin/pylsp")], json!({}), &[]).await;
    project.open("a.py", "python", TEXT).await;
    let created = project.seen("window/workDoneProgress/create", |_| true).await;
    for kind in ["begin", "end"] {
        let progress = project.seen("$/progress", |params| params["value"]["kind"] == kind).await;
        assert_eq!(progress["token"], created["token"]);
    }
    project.shutdown().await;
}
