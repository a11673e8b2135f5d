//! pylsp, from Python's packages.

use serde_json::json;

use super::editor::{Project, messages, range};
use crate::scratch::interop;

/// No emoji: pylsp counts code points, although it agrees on UTF-16.
const TEXT: &str = "import os\nname = os.getcwd()\nprint('ä', nam)\n";

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn every_step_of_a_session() {
    let project = Project::start(&[&interop(".venv/bin/pylsp")], json!({}), &[]).await;
    assert_eq!(project.session().server_info().unwrap().name, "pylsp");
    let mut document = project.open("a.py", "python", TEXT).await;
    let wrong = project.diagnostics(&document, |_| true).await;
    assert_eq!(messages(&wrong), ["undefined name 'nam'"]);
    assert!(project.hover(&document, (1, 11)).await.contains("getcwd() -> str"));
    let completions = project.completions(&document, (2, 14)).await;
    assert!(completions.iter().any(|label| label == "name"), "{completions:?}");
    document.edit(range(2, 11, 14), "name").await.unwrap();
    project.diagnostics(&document, <[_]>::is_empty).await;
    project.shutdown().await;
}

/// pylsp waits for our answer to `create` in the thread of a linter.
#[tokio::test]
#[ignore = "needs interop/setup"]
async fn what_it_asks_and_tells_by_itself() {
    let mut project = Project::start(&[&interop(".venv/bin/pylsp")], json!({}), &[]).await;
    let _document = project.open("a.py", "python", TEXT).await;
    let token = project.progress().await;
    assert_eq!(project.asked("window/workDoneProgress/create").await["token"], token);
    project.shutdown().await;
}
