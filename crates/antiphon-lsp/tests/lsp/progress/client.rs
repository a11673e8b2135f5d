//! Progress and partial results, as they arrive in a session.

use std::sync::Arc;

use antiphon::{CallError, Context, ErrorObject};
use antiphon_lsp::types::{
    InitializeParams, InitializeResult, Location, LogMessageParams, MessageType, ProgressParams,
    Range, ReferenceParams, WorkDoneProgressBegin, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd,
};
use antiphon_lsp::{
    Editor, LanguageClient, LanguageServer, ProgressState, ServerSession, WorkDoneReport,
};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::raw_editor::within;
use crate::support::{Silent, code};

/// A server whose references depend on the line that they are asked for.
struct Backend {
    editor: Editor,
    /// The token of each request, and its cancellation.
    told: mpsc::UnboundedSender<String>,
}

const ALL: u32 = 0;
const NO_PARTS: u32 = 1;
const FAILS: u32 = 2;
const WAITS: u32 = 3;
const BAD_PART: u32 = 4;

fn location(uri: &str) -> Location {
    Location { uri: uri.into(), range: Range::default() }
}

impl LanguageServer for Backend {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn references(
        &self,
        params: ReferenceParams,
        cx: Context,
    ) -> Result<Option<Vec<Location>>, ErrorObject> {
        let token = params.partial_result_params.partial_result_token.clone();
        self.told.send(json!(token).to_string()).unwrap();
        let line = params.text_document_position_params.position.line;
        if line == NO_PARTS {
            return Ok(Some(vec![location("all")]));
        }
        let progress = self.editor.progress(&params, "References").percentage(0).await?;
        self.editor.log(MessageType::Info, "first").await?;
        let mut results = self.editor.partial_results(&params);
        results.send(vec![location("a")]).await?;
        match line {
            FAILS => return Err(ErrorObject::new(-32803, "no index")),
            WAITS => {
                let (told, cancelled) = (self.told.clone(), cx.cancellation().clone());
                let late = ProgressParams::new(token.unwrap(), json!([location("late")]));
                let editor = self.editor.clone();
                tokio::spawn(async move {
                    cancelled.cancelled().await;
                    told.send("cancelled".to_owned()).unwrap();
                    editor.send_progress(late).await.unwrap();
                });
                std::future::pending::<()>().await;
            }
            BAD_PART => {
                let value = json!({"not": "an array"});
                self.editor.send_progress(ProgressParams::new(token.unwrap(), value)).await?;
            }
            _ => {}
        }
        results.send(vec![location("b"), location("c")]).await?;
        progress.end("3 found").await?;
        results.finish()
    }
}

fn references(line: u32) -> ReferenceParams {
    let params = json!({"textDocument": {"uri": "a"}, "position": {"line": line, "character": 0},
        "context": {"includeDeclaration": true}});
    serde_json::from_value(params).unwrap()
}

async fn start(client: impl LanguageClient) -> (ServerSession, mpsc::UnboundedReceiver<String>) {
    let (told, heard) = mpsc::unbounded_channel();
    let make = |editor| Backend { editor, told };
    (ServerSession::builder().in_process(make, client).await.unwrap(), heard)
}

fn uris(locations: &[Location]) -> Vec<&str> {
    locations.iter().map(|location| &*location.uri.0).collect()
}

#[tokio::test]
async fn the_parts_and_the_progress_of_a_request_are_streams() {
    let (session, mut heard) = start(Silent).await;
    let (mut results, progress) = session.server().partial_results_with_progress(references(ALL));
    assert_eq!(uris(&within(results.next()).await.unwrap().unwrap()), ["a"]);
    assert_eq!(uris(&within(results.next()).await.unwrap().unwrap()), ["b", "c"]);
    assert!(within(results.next()).await.is_none());
    assert_eq!(within(results.response()).await.unwrap(), None);
    let reports: Vec<_> = within(progress.collect()).await;
    let reports: Vec<WorkDoneReport> = reports.into_iter().map(Result::unwrap).collect();
    let begin = WorkDoneProgressBegin {
        title: "References".to_owned(),
        percentage: Some(0),
        ..Default::default()
    };
    let end = WorkDoneProgressEnd::new(Some("3 found".to_owned()));
    assert_eq!(reports, [WorkDoneReport::Begin(begin), WorkDoneReport::End(end)]);
    // The next request has another token.
    let again = session.server().partial_results(references(ALL));
    assert_eq!(within(again.collect::<Vec<_>>()).await.len(), 2);
    assert_ne!(heard.recv().await, heard.recv().await);
}

#[tokio::test]
async fn a_server_without_parts_has_everything_in_the_response() {
    let (session, _heard) = start(Silent).await;
    let mut results = session.server().partial_results(references(NO_PARTS));
    assert!(within(results.next()).await.is_none());
    let all = within(results.response()).await.unwrap().unwrap();
    assert_eq!(uris(&all), ["all"]);
    // Without a look at the parts.
    let results = session.server().partial_results(references(ALL));
    assert_eq!(within(results.response()).await.unwrap(), None);
}

#[tokio::test]
async fn an_error_is_the_last_item() {
    let (session, _heard) = start(Silent).await;
    let mut results = session.server().partial_results(references(FAILS));
    assert_eq!(uris(&within(results.next()).await.unwrap().unwrap()), ["a"]);
    assert_eq!(code(within(results.next()).await.unwrap()), -32803);
    assert!(within(results.next()).await.is_none());
    assert_eq!(code(within(results.response()).await), -32803);
}

#[tokio::test]
async fn a_part_of_another_type_ends_the_stream() {
    let (session, _heard) = start(Silent).await;
    let mut results = session.server().partial_results(references(BAD_PART));
    within(results.next()).await.unwrap().unwrap();
    let error = within(results.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Decode { .. }), "{error:?}");
    assert!(within(results.next()).await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_dropped_cancels_its_request() {
    let (seen, mut reports) = mpsc::unbounded_channel();
    let (session, mut heard) = start(Refusing(seen)).await;
    let mut results = session.server().partial_results(references(WAITS));
    within(results.next()).await.unwrap().unwrap();
    let token = within(heard.recv()).await.unwrap();
    let mut next = session.server().partial_results(references(ALL));
    drop(results);
    assert_eq!(within(heard.recv()).await.as_deref(), Some("cancelled"));
    // A part that comes late is an ordinary notification. No other stream receives it.
    let late = within(reports.recv()).await.unwrap();
    assert_eq!((json!(late.token).to_string(), &late.value[0]["uri"]), (token, &json!("late")));
    assert_eq!(uris(&within(next.next()).await.unwrap().unwrap()), ["a"]);
    assert_eq!(within(next.count()).await, 1);
}

/// An editor that waits in the handler of each log line.
struct Slow(Arc<Notify>);

impl LanguageClient for Slow {
    async fn log_message(&self, _: LogMessageParams, _: Context) {
        self.0.notified().await;
    }
}

#[tokio::test]
async fn parts_do_not_wait_for_the_handlers_of_notifications() {
    let release: Arc<Notify> = Arc::default();
    let (session, _heard) = start(Slow(release.clone())).await;
    let results = session.server().partial_results(references(ALL));
    assert_eq!(within(results.collect::<Vec<_>>()).await.len(), 2);
    release.notify_one();
    session.shutdown().await.unwrap();
}

/// Starts a session, and returns the handle that its server has.
async fn with_editor(client: impl LanguageClient) -> (ServerSession, Editor) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let make = move |editor: Editor| {
        tell.send(editor.clone()).unwrap();
        crate::support::Bare
    };
    let session = ServerSession::builder().in_process(make, client).await.unwrap();
    (session, told.recv().await.unwrap())
}

fn shown(state: &ProgressState) -> (&str, Option<u32>, bool) {
    (state.message.as_deref().unwrap_or_default(), state.percentage, state.ended)
}

#[tokio::test]
async fn progress_that_the_server_creates_is_a_stream_of_states() {
    let (session, editor) = with_editor(Silent).await;
    let mut all = session.progress();
    assert!(all.next().now_or_never().is_none());
    let begin = editor.create_progress("Indexing").percentage(1).cancellable();
    let mut reported = within(begin.into_future()).await.unwrap();
    let mut progress = within(all.next()).await.unwrap();
    let state = within(progress.next()).await.unwrap();
    assert_eq!((&*state.title, state.cancellable), ("Indexing", true));
    assert_eq!(shown(&state), ("", Some(1), false));
    assert!(progress.next().now_or_never().is_none());
    reported.report("half", 50).await.unwrap();
    assert_eq!(shown(&within(progress.next()).await.unwrap()), ("half", Some(50), false));
    progress.cancel().await.unwrap();
    within(reported.cancellation().cancelled()).await;
    reported.end("stopped").await.unwrap();
    assert_eq!(shown(&within(progress.next()).await.unwrap()), ("stopped", Some(50), true));
    assert!(within(progress.next()).await.is_none());
}

#[tokio::test]
async fn a_slow_reader_sees_the_newest_state_of_each_progress() {
    let (session, editor) = with_editor(Silent).await;
    let mut first = within(editor.create_progress("first").into_future()).await.unwrap();
    first.report("one", 10).await.unwrap();
    first.report("two", 20).await.unwrap();
    let _second = within(editor.create_progress("second").into_future()).await.unwrap();
    let mut all = session.progress();
    let mut progress = within(all.next()).await.unwrap();
    assert_eq!(shown(&within(progress.next()).await.unwrap()), ("two", Some(20), false));
    let mut other = within(all.next()).await.unwrap();
    assert_eq!(within(other.next()).await.unwrap().title, "second");
    assert_ne!(progress.token(), other.token());
    session.shutdown().await.unwrap();
    for _ in 0..2 {
        assert!(within(all.next()).await.is_none());
        assert!(within(other.next()).await.is_none());
    }
}

#[tokio::test]
async fn progress_that_ends_before_it_is_read_is_not_lost() {
    let (session, editor) = with_editor(Silent).await;
    for title in ["first", "second"] {
        let begin = editor.create_progress(title).percentage(1);
        within(begin.into_future()).await.unwrap().end("done").await.unwrap();
    }
    // The reports precede this request.
    within(editor.workspace_folders().into_future()).await.unwrap();
    let mut all = session.progress();
    for title in ["first", "second"] {
        let mut progress = within(all.next()).await.unwrap();
        let states: Vec<_> = within(progress.by_ref().collect()).await;
        let [state] = &states[..] else { panic!("{states:?}") };
        assert_eq!((&*state.title, shown(state)), (title, ("done", Some(1), true)));
    }
    assert!(all.next().now_or_never().is_none());
}

/// An editor that shows no progress.
struct Refusing(mpsc::UnboundedSender<ProgressParams>);

impl LanguageClient for Refusing {
    async fn work_done_progress_create(
        &self,
        _: WorkDoneProgressCreateParams,
        _: Context,
    ) -> Result<(), ErrorObject> {
        Err(ErrorObject::new(-32803, "no room"))
    }

    async fn progress(&self, params: ProgressParams, _: Context) {
        self.0.send(params).unwrap();
    }
}

#[tokio::test]
async fn what_the_client_refuses_and_unknown_tokens_are_not_in_the_stream() {
    let (seen, mut reports) = mpsc::unbounded_channel();
    let (session, editor) = with_editor(Refusing(seen)).await;
    let mut all = session.progress();
    let refused = within(editor.create_progress("refused").into_future()).await;
    assert_eq!(code(refused), -32803);
    let unknown = ProgressParams::new("unknown".into(), json!({"kind": "end"}));
    editor.send_progress(unknown.clone()).await.unwrap();
    assert_eq!(within(reports.recv()).await.unwrap(), unknown);
    assert!(all.next().now_or_never().is_none());
}
