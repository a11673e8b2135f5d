//! A session with a server: the start, the handshake, the end, and what goes wrong in each.

mod answers;
mod client_calls;
mod diagnostics;
mod documents;
#[cfg(unix)]
mod process;
mod recorder;

use std::time::Duration;

use antiphon::{Client, Context, Dialect, ErrorChain, ErrorObject, Router, Server};
use antiphon_lsp::documents::PositionEncoding;
use antiphon_lsp::types::{
    HoverParams, InitializeError, InitializeParams, InitializeResult, LogMessageParams, Position,
    PositionEncodingKind, ServerCapabilities, TextDocumentIdentifier, TextDocumentPositionParams,
};
use antiphon_lsp::{
    Editor, LanguageClient, LanguageServer, LanguageService, ServerSession, ShutdownError,
    StartError,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::support::{Bare, Silent, example};

/// Keeps what the server logs.
struct Log(mpsc::UnboundedSender<String>);

impl LanguageClient for Log {
    async fn log_message(&self, params: LogMessageParams, _: Context) {
        self.0.send(params.message).unwrap();
    }
}

fn hover_at(line: u32) -> HoverParams {
    let document = TextDocumentIdentifier { uri: "file:///a".into() };
    let at = TextDocumentPositionParams::new(document, Position::new(line, 0));
    HoverParams::new(Default::default(), at)
}

#[tokio::test]
async fn a_process_is_started_used_and_ended() {
    let (log, mut logged) = mpsc::unbounded_channel();
    let endpoint = format!("exec:{}", example("hover_server").display());
    let session = ServerSession::builder().start(endpoint.as_str(), Log(log)).await.unwrap();
    assert!(session.capabilities().hover_provider.is_some());
    assert_eq!(session.encoding(), PositionEncoding::Utf16);
    let hover = session.server().hover(hover_at(3)).await.unwrap();
    assert!(format!("{hover:?}").contains("hello from line 3"), "{hover:?}");
    assert_eq!(logged.recv().await.as_deref(), Some("hover in line 3"));
    session.shutdown().await.unwrap();
}

#[test]
fn the_example_of_a_client_prints_what_the_example_of_a_server_finds() {
    let path = std::env::temp_dir().join(format!("antiphon-lsp-diagnose-{}", std::process::id()));
    std::fs::write(&path, "right\nteh end\n").unwrap();
    let mut client = std::process::Command::new(example("diagnose"));
    let client = client.arg(format!("exec:{}", example("typos_server").display()));
    let output = client.arg(&path).arg("plaintext").output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}:2: Write `the`\n", path.display()));
    assert!(output.status.success());
}

#[tokio::test]
async fn a_server_that_listens_is_used_and_ended() {
    let server = Server::bind("tcp+header://127.0.0.1:0").await.unwrap();
    let endpoint = server.endpoint().to_string();
    let server = server.dialect(Dialect::lsp());
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(
        antiphon::PerConnection::new(|_: &_, _| LanguageService::new(Bare)),
        async {
            let _ = ended.await;
        },
    ));
    // Without a framing, it is that of the protocol.
    let endpoint = endpoint.replace("+header", "");
    let session = ServerSession::builder().start(endpoint.as_str(), Silent).await.unwrap();
    let server = session.server().clone();
    session.shutdown().await.unwrap();
    let error = server.hover(hover_at(1)).await.unwrap_err();
    assert!(matches!(error, antiphon::CallError::Closed(_)), "{error}");
    end.send(()).unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_not_started() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("tcp://{unused}");
    let error = ServerSession::builder().start(endpoint.as_str(), Silent).await.unwrap_err();
    assert!(matches!(error, StartError::Connect { .. }), "{error:?}");
    let shown = error.to_string();
    assert!(shown.starts_with("cannot connect to the language server tcp"), "{shown}");
    assert!(shown.contains("listens there"), "{shown}");
}

/// Returns the params that a server gets with these settings.
async fn announced(settings: antiphon_lsp::SessionBuilder) -> Value {
    let (seen, mut params) = mpsc::unbounded_channel();
    let router = Router::new()
        .method("initialize", move |params: Value, _: Context| {
            seen.send(params).unwrap();
            async { Ok(json!({"capabilities": {}})) }
        })
        .notification("initialized", |_: Value, _: Context| async {});
    let client = connect_over(settings, router).await;
    drop(client.unwrap());
    params.recv().await.unwrap()
}

/// A session with a server that consists of these methods.
async fn connect_over(
    settings: antiphon_lsp::SessionBuilder,
    router: Router,
) -> Result<ServerSession, StartError> {
    let (ours, theirs) = antiphon::transport::memory::pair();
    let server = Client::builder().dialect(Dialect::lsp()).handler(router).over(theirs);
    let session = settings.over(ours, Silent).await;
    // The server ends with its client.
    tokio::spawn(async move { server.peer().unwrap().closed().await });
    session
}

#[tokio::test]
async fn the_server_learns_who_starts_it() {
    let settings = ServerSession::builder()
        .client_info("test", Some("1"))
        .root("/tmp/one two")
        .unwrap()
        .root("/tmp/one two/../other")
        .unwrap()
        .initialization_options(json!({"a": 1}))
        .encodings(&[PositionEncoding::Utf32, PositionEncoding::Utf16]);
    let params = announced(settings).await;
    assert_eq!(params["clientInfo"], json!({"name": "test", "version": "1"}));
    assert_eq!(params["initializationOptions"], json!({"a": 1}));
    assert_eq!(params["processId"], Value::Null);
    #[cfg(unix)]
    {
        assert_eq!(params["rootUri"], json!("file:///tmp/one%20two"));
        let folders = json!([
            {"uri": "file:///tmp/one%20two", "name": "one two"},
            {"uri": "file:///tmp/other", "name": "other"},
        ]);
        assert_eq!(params["workspaceFolders"], folders);
    }
    let capabilities = &params["capabilities"];
    assert_eq!(capabilities["general"]["positionEncodings"], json!(["utf-32", "utf-16"]));
    assert_eq!(capabilities["textDocument"]["synchronization"]["didSave"], json!(true));
}

/// A server with this answer to `initialize`.
struct Answer(Result<ServerCapabilities, ErrorObject>);

impl LanguageServer for Answer {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let capabilities = self.0.clone()?;
        Ok(InitializeResult { capabilities, ..Default::default() })
    }
}

async fn start_with(
    answer: Result<ServerCapabilities, ErrorObject>,
) -> Result<ServerSession, StartError> {
    ServerSession::builder().in_process(move |_: Editor| Answer(answer), Silent).await
}

#[tokio::test]
async fn the_server_chooses_the_encoding() {
    for (kind, encoding) in [
        (Some(PositionEncodingKind::UTF8), PositionEncoding::Utf8),
        (Some(PositionEncodingKind::UTF32), PositionEncoding::Utf32),
        (None, PositionEncoding::Utf16),
    ] {
        let capabilities = ServerCapabilities { position_encoding: kind, ..Default::default() };
        assert_eq!(start_with(Ok(capabilities)).await.unwrap().encoding(), encoding);
    }
    let kind = Some(PositionEncodingKind::new("utf-7"));
    let capabilities = ServerCapabilities { position_encoding: kind, ..Default::default() };
    let error = start_with(Ok(capabilities)).await.unwrap_err();
    assert!(error.to_string().contains("counts positions in `utf-7`"), "{error}");
}

#[tokio::test]
async fn a_refusal_tells_whether_to_try_again() {
    for wanted in [true, false] {
        let refusal =
            ErrorObject::new(-32803, "no license").with_data(&InitializeError::new(wanted));
        match start_with(Err(refusal)).await.unwrap_err() {
            error @ StartError::Refused { retry, .. } => {
                assert_eq!(retry, wanted);
                assert!(error.to_string().contains("no license"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    let error = start_with(Err(ErrorObject::new(-1, "no"))).await.unwrap_err();
    assert!(matches!(error, StartError::Refused { retry: false, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let router = Router::new().method("initialize", |_: Value, _: Context| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let settings = ServerSession::builder().initialize_timeout(Duration::from_secs(7));
    let error = connect_over(settings, router).await.unwrap_err();
    let shown = ErrorChain(&error).to_string();
    assert!(matches!(error, StartError::Handshake { .. }) && shown.contains("7s"), "{shown}");
}

#[tokio::test]
async fn an_answer_that_is_no_result_of_initialize_is_an_error() {
    let router =
        Router::new().method("initialize", |_: Value, _: Context| async { Ok(json!({"a": 1})) });
    let error = connect_over(ServerSession::builder(), router).await.unwrap_err();
    let shown = ErrorChain(&error).to_string();
    assert!(shown.contains("the result of `initialize`"), "{shown}");
}

/// A server that answers `initialize`.
fn starting() -> Router {
    Router::new()
        .method("initialize", |_: Value, _: Context| async { Ok(json!({"capabilities": {}})) })
        .notification("initialized", |_: Value, _: Context| async {})
}

/// A server that does not end at `exit`.
fn endless() -> Router {
    starting().notification("exit", |_: Value, _: Context| async {})
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_is_given_up() {
    let router = endless().method("shutdown", |_: Value, _: Context| async { Ok(()) });
    let settings = ServerSession::builder().shutdown_timeout(Duration::from_secs(3));
    let session = connect_over(settings.clone(), router).await.unwrap();
    let error = session.shutdown().await.unwrap_err();
    assert!(matches!(error, ShutdownError::StillRunning { .. }), "{error:?}");
    assert!(error.to_string().contains("did not close the connection within 3s"), "{error}");

    let router = endless().method("shutdown", |_: Value, _: Context| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let session = connect_over(settings, router).await.unwrap();
    let error = session.shutdown().await.unwrap_err();
    assert!(ErrorChain(&error).to_string().contains("no response within 3s"), "{error:?}");
}

#[tokio::test]
async fn the_value_of_shutdown_does_not_matter() {
    let router = starting()
        .method("shutdown", |_: Value, _: Context| async { Ok(true) })
        .notification("exit", |_: Value, cx: Context| async move {
            let peer = cx.peer().unwrap().clone();
            tokio::spawn(async move { peer.close().await });
        });
    let session = connect_over(ServerSession::builder(), router).await.unwrap();
    session.shutdown().await.unwrap();
}

/// Tells when its hover starts and when it is cancelled.
struct Waiting(mpsc::UnboundedSender<&'static str>);

impl LanguageServer for Waiting {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn hover(
        &self,
        _: HoverParams,
        cx: Context,
    ) -> Result<Option<antiphon_lsp::types::Hover>, ErrorObject> {
        let (told, cancelled) = (self.0.clone(), cx.cancellation().clone());
        tokio::spawn(async move {
            cancelled.cancelled().await;
            told.send("cancelled").unwrap();
        });
        self.0.send("started").unwrap();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let session = ServerSession::builder();
    let session = session.in_process(move |_: Editor| Waiting(tell), Silent);
    let session = session.await.unwrap();
    let hover = session.server().hover(hover_at(1));
    let mut hover = hover.into_future();
    tokio::select! {
        _ = &mut hover => panic!("the server does not answer"),
        first = told.recv() => assert_eq!(first, Some("started")),
    }
    drop(hover);
    assert_eq!(told.recv().await, Some("cancelled"));
    session.shutdown().await.unwrap();
}

#[tokio::test]
async fn null_params_of_the_server_are_accepted() {
    struct Refresh(mpsc::UnboundedSender<()>);
    impl LanguageClient for Refresh {
        async fn semantic_tokens_refresh(&self, _: Context) -> Result<(), ErrorObject> {
            self.0.send(()).unwrap();
            Ok(())
        }
    }
    let (ours, mut theirs) = antiphon::transport::memory::pair();
    let (refreshed, mut seen) = mpsc::unbounded_channel();
    let starting = ServerSession::builder().over(ours, Refresh(refreshed));
    let serving = async {
        use futures_util::{SinkExt as _, StreamExt as _};
        let first = theirs.next().await.unwrap().unwrap();
        let id = &serde_json::from_slice::<Value>(&first).unwrap()["id"];
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"capabilities": {}}});
        theirs.send(answer.to_string().into()).await.unwrap();
        let refresh =
            r#"{"jsonrpc":"2.0","id":0,"method":"workspace/semanticTokens/refresh","params":null}"#;
        theirs.send(refresh.into()).await.unwrap();
        // `initialized` and the answer, in any order.
        let next = [theirs.next().await, theirs.next().await];
        next.map(|message| serde_json::from_slice::<Value>(&message.unwrap().unwrap()).unwrap())
    };
    let (session, next) = tokio::join!(starting, serving);
    assert_eq!(seen.recv().await, Some(()));
    let answer = next.iter().find(|message| message.get("id").is_some()).unwrap();
    assert_eq!(answer, &json!({"jsonrpc": "2.0", "result": null, "id": 0}));
    drop(session.unwrap());
}
