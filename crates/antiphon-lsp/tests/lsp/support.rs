//! A server in this process, and a child process that serves over stdio.

use std::path::PathBuf;

use antiphon::{CallError, Client, Context, Dialect, ErrorObject, Handler, PerConnection};
use antiphon_lsp::types::{InitializeParams, InitializeResult};
use antiphon_lsp::{Editor, LanguageClient, LanguageServer, LanguageService};

/// A server that does nothing but start.
pub(crate) struct Bare;

impl LanguageServer for Bare {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }
}

/// Connects a client to a server in this process.
pub(crate) fn connect<S: LanguageServer>(
    make: impl Fn(Editor) -> S + Send + Sync + 'static,
) -> Client {
    let serve = PerConnection::new(move |_, peer| LanguageService::for_peer(peer, &make));
    connect_handler(serve)
}

pub(crate) fn connect_handler(handler: impl Handler) -> Client {
    let dialect = Dialect::lsp();
    Client::builder().limits(dialect.limits()).dialect(dialect).in_process(handler)
}

/// The code of an error response; 0 for a result.
pub(crate) fn code<T>(outcome: Result<T, CallError>) -> i64 {
    match outcome {
        Ok(_) => 0,
        Err(CallError::Rpc(error)) => error.code.0,
        Err(other) => panic!("no response: {other}"),
    }
}

/// The path of an example of this crate, which `cargo test` has built.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let path = folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: run cargo build --examples", path.display());
    path
}

/// An editor that answers no request.
pub(crate) struct Silent;

impl LanguageClient for Silent {}
