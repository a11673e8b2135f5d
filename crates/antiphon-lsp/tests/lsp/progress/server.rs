//! Work-done progress, as a server reports it and as it arrives.

use std::collections::HashSet;

use antiphon::{Code, Context, Dialect, ErrorObject, Limits};
use antiphon_lsp::types::{
    ExecuteCommandParams, InitializeParams, InitializeResult, InitializedParams, LspAny,
    WorkDoneProgressCancelParams,
};
use antiphon_lsp::{Editor, LanguageServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::raw_editor::{RawEditor, within};

/// A server whose commands report progress.
struct Backend {
    editor: Editor,
    /// What has happened to progress that this side has created.
    seen: mpsc::UnboundedSender<String>,
}

impl LanguageServer for Backend {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn initialized(&self, _: InitializedParams, cx: Context) {
        let (editor, seen) = (self.editor.clone(), self.seen.clone());
        let index = async move {
            let begin = editor.create_progress("Indexing").message("start").cancellable();
            match begin.await {
                Err(error) => seen.send(format!("refused: {error}")).unwrap(),
                Ok(progress) if !progress.is_shown() => seen.send("silent".to_owned()).unwrap(),
                Ok(progress) => {
                    progress.cancellation().cancelled().await;
                    seen.send("cancelled".to_owned()).unwrap();
                }
            }
        };
        cx.spawn(index).unwrap();
    }

    async fn work_done_progress_cancel(&self, params: WorkDoneProgressCancelParams, _: Context) {
        self.seen.send(format!("handled {}", json!(params.token))).unwrap();
    }

    async fn execute_command(
        &self,
        params: ExecuteCommandParams,
        _: Context,
    ) -> Result<Option<LspAny>, ErrorObject> {
        let begin = self.editor.progress(&params, "Work").message("first").percentage(10);
        let mut progress = begin.await?;
        match &*params.command {
            "steps" => {
                progress.report("half", 50).await?;
                progress.report("less", 20).await?;
                progress.report("no number", None).await?;
                progress.percentage(200).await?;
                progress.end("done").await?;
            }
            "fail" => return Err(ErrorObject::new(-1, "failed")),
            "panic" => panic!("on purpose"),
            "outlive" => {
                let seen = self.seen.clone();
                tokio::spawn(async move {
                    while progress.is_shown() {
                        progress.percentage(20).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    progress.end("too late").await.unwrap();
                    seen.send("ended".to_owned()).unwrap();
                });
            }
            _ => {
                progress.cancellation().cancelled().await;
                progress.report("cancelled", None).await?;
            }
        }
        Ok(None)
    }
}

type Seen = mpsc::UnboundedReceiver<String>;

async fn start(announced: bool) -> (RawEditor, Seen) {
    let (seen, events) = mpsc::unbounded_channel();
    let capabilities = json!({"window": {"workDoneProgress": announced}});
    let make = move |editor| Backend { editor, seen: seen.clone() };
    let editor = RawEditor::start(capabilities, make).await;
    (editor, events)
}

/// An editor that sees only the progress that it asks for.
async fn start_silent() -> RawEditor {
    let (editor, mut seen) = start(false).await;
    assert_eq!(next(&mut seen).await, "silent");
    editor
}

async fn next(seen: &mut Seen) -> String {
    within(seen.recv()).await.unwrap()
}

fn command(name: &str, token: &Value) -> Value {
    json!({"command": name, "workDoneToken": token})
}

/// The next message, which reports progress for this token.
async fn progress(editor: &mut RawEditor, token: &Value) -> Value {
    let message = editor.expect("$/progress").await;
    assert_eq!(message["params"]["token"], *token, "{message}");
    message["params"]["value"].clone()
}

fn begin() -> Value {
    json!({"kind": "begin", "title": "Work", "message": "first", "percentage": 10})
}

#[tokio::test]
async fn the_reports_of_a_request_precede_its_response() {
    let mut editor = start_silent().await;
    for (id, token) in [(1, json!(7)), (2, json!("7"))] {
        editor.request(id, "workspace/executeCommand", command("steps", &token)).await;
        for value in [
            begin(),
            json!({"kind": "report", "message": "half", "percentage": 50}),
            // A percentage does not fall, and is at most 100.
            json!({"kind": "report", "message": "less", "percentage": 50}),
            json!({"kind": "report", "message": "no number"}),
            json!({"kind": "report", "percentage": 100}),
            json!({"kind": "end", "message": "done"}),
        ] {
            assert_eq!(progress(&mut editor, &token).await, value);
        }
        assert_eq!(editor.response(id).await["result"], Value::Null);
    }
}

#[tokio::test]
async fn a_request_without_a_token_gets_no_reports() {
    let mut editor = start_silent().await;
    editor.request(1, "workspace/executeCommand", json!({"command": "steps"})).await;
    assert_eq!(editor.response(1).await["result"], Value::Null);
}

#[tokio::test]
async fn progress_ends_before_the_response_of_a_handler_that_fails_or_panics() {
    let mut editor = start_silent().await;
    for (id, name, code) in [(1, "fail", -1), (2, "panic", Code::INTERNAL_ERROR.0)] {
        editor.request(id, "workspace/executeCommand", command(name, &json!(1))).await;
        assert_eq!(progress(&mut editor, &json!(1)).await, begin());
        assert_eq!(progress(&mut editor, &json!(1)).await, json!({"kind": "end"}));
        assert_eq!(editor.response(id).await["error"]["code"], code);
    }
}

#[tokio::test]
async fn progress_ends_before_the_response_while_the_write_queue_is_full() {
    let (seen, mut events) = mpsc::unbounded_channel();
    let limits = Limits { write_queue_bytes: 1, ..Dialect::lsp().limits() };
    let make = move |editor| Backend { editor, seen: seen.clone() };
    let mut editor = RawEditor::connect_with(limits, make).await.initialized(json!({})).await;
    assert_eq!(next(&mut events).await, "silent");
    for id in 1..20 {
        editor.request(id, "workspace/executeCommand", command("fail", &json!(id))).await;
    }
    let mut ended = HashSet::new();
    let mut answered = 0;
    while answered < 19 {
        let message = editor.next().await;
        if let Some(id) = message["id"].as_u64() {
            assert!(ended.contains(&id), "{message}");
            answered += 1;
        } else if message["params"]["value"]["kind"] == "end" {
            assert!(ended.insert(message["params"]["token"].as_u64().unwrap()), "{message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_that_outlives_its_request_ends_before_the_response() {
    let (mut editor, mut seen) = start(false).await;
    assert_eq!(next(&mut seen).await, "silent");
    for id in 1..100 {
        let token = json!(id);
        editor.request(id, "workspace/executeCommand", command("outlive", &token)).await;
        let mut last = Value::Null;
        loop {
            let message = editor.next().await;
            if message.get("id").is_some() {
                break;
            }
            assert_eq!(message["params"]["token"], token, "{message}");
            last = message["params"]["value"].clone();
        }
        assert_eq!(last, json!({"kind": "end"}));
        assert_eq!(next(&mut seen).await, "ended");
    }
    // Nothing came after a response.
    editor.request(100, "shutdown", json!(null)).await;
    assert_eq!(editor.response(100).await["result"], Value::Null);
}

#[tokio::test]
async fn progress_ends_before_the_response_of_a_cancelled_request() {
    let mut editor = start_silent().await;
    editor.request(1, "workspace/executeCommand", command("wait", &json!(1))).await;
    assert_eq!(progress(&mut editor, &json!(1)).await, begin());
    editor.notify("$/cancelRequest", json!({"id": 1})).await;
    assert_eq!(progress(&mut editor, &json!(1)).await, json!({"kind": "end"}));
    assert_eq!(editor.response(1).await["error"]["code"], -32800);
}

#[tokio::test]
async fn the_progress_of_a_request_can_be_cancelled_without_the_request() {
    let mut editor = start_silent().await;
    for (id, token) in [(1, "a"), (2, "b")] {
        editor.request(id, "workspace/executeCommand", command("wait", &json!(token))).await;
        assert_eq!(progress(&mut editor, &json!(token)).await, begin());
    }
    editor.notify("window/workDoneProgress/cancel", json!({"token": "unknown"})).await;
    editor.notify("window/workDoneProgress/cancel", json!({"token": "b"})).await;
    let report = json!({"kind": "report", "message": "cancelled"});
    assert_eq!(progress(&mut editor, &json!("b")).await, report);
    assert_eq!(progress(&mut editor, &json!("b")).await, json!({"kind": "end"}));
    assert_eq!(editor.response(2).await["result"], Value::Null);
    // The token is free again.
    editor.notify("window/workDoneProgress/cancel", json!({"token": "b"})).await;
    editor.request(3, "workspace/executeCommand", command("wait", &json!("b"))).await;
    assert_eq!(progress(&mut editor, &json!("b")).await, begin());
    editor.notify("$/cancelRequest", json!({"id": 1})).await;
    assert_eq!(progress(&mut editor, &json!("a")).await, json!({"kind": "end"}));
    assert_eq!(editor.response(1).await["error"]["code"], -32800);
}

#[tokio::test]
async fn created_progress_begins_when_the_editor_agrees_and_ends_when_it_is_cancelled() {
    let (mut editor, mut seen) = start(true).await;
    let create = editor.expect("window/workDoneProgress/create").await;
    let token = create["params"]["token"].clone();
    assert!(token.is_string(), "{token}");
    editor.answer(&create, Value::Null).await;
    let begin =
        json!({"kind": "begin", "title": "Indexing", "message": "start", "cancellable": true});
    assert_eq!(progress(&mut editor, &token).await, begin);
    editor.notify("window/workDoneProgress/cancel", json!({"token": "unknown"})).await;
    assert_eq!(next(&mut seen).await, "handled \"unknown\"");
    editor.notify("window/workDoneProgress/cancel", json!({"token": token})).await;
    let mut both = [next(&mut seen).await, next(&mut seen).await];
    both.sort_unstable();
    assert_eq!(both, ["cancelled".to_owned(), format!("handled {token}")]);
    assert_eq!(progress(&mut editor, &token).await, json!({"kind": "end"}));
}

#[tokio::test]
async fn two_tokens_of_one_connection_differ() {
    let (mut editor, _seen) = start(true).await;
    let first = editor.expect("window/workDoneProgress/create").await;
    editor.notify("initialized", json!({})).await;
    let second = editor.expect("window/workDoneProgress/create").await;
    assert_ne!(first["params"]["token"], second["params"]["token"]);
}

#[tokio::test]
async fn progress_that_the_editor_refuses_is_an_error_and_sends_nothing() {
    let (mut editor, mut seen) = start(true).await;
    let create = editor.expect("window/workDoneProgress/create").await;
    let error = json!({"code": -32601, "message": "no progress here"});
    editor.send(json!({"jsonrpc": "2.0", "id": create["id"], "error": error})).await;
    assert!(next(&mut seen).await.contains("no progress here"));
    editor.request(1, "shutdown", json!(null)).await;
    assert_eq!(editor.response(1).await["result"], Value::Null);
}
