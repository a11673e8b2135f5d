//! The Language Server Protocol on Antiphon, for servers and for clients.
//!
//! A server implements [`LanguageServer`], and [`serve_stdio`] serves it to an editor:
//!
//! - [`Editor`] is the other side: its requests and notifications, [progress](Editor::progress) and
//!   [partial results](Editor::partial_results).
//! - [`documents::Documents`] keeps the texts of the open documents.
//! - [`LanguageService`] enforces the lifecycle, also over connections other than stdio.
//! - [`error`] has the errors of the protocol.
//!
//! A client starts a server with [`ServerSession`], and answers it with a [`LanguageClient`]:
//!
//! - [`RemoteServer`] is the other side, with [results in parts](RemoteServer::partial_results).
//! - [`ServerSession::open`] opens a document, and [`ServerSession::diagnostics`] is what the server finds.
//! - [`ServerSession::progress`] is what the server does on its own.
//!
//! [`types`] holds the types of the protocol, generated from its meta model by the crate `gen-lsp-types`.

mod channel;
#[cfg(test)]
mod contract_tests;
mod defaults;
pub mod documents;
mod editor;
mod editor_process;
pub mod error;
mod file_uri;
mod generated;
mod language_service;
mod lifecycle;
mod progress;
mod remote_server;
mod routes;
mod session;

pub use channel::{Channel, InvalidChannel, limits, serve_stdio};
pub use editor::Editor;
pub use file_uri::{file_path, file_uri};
pub use gen_lsp_types as types;
pub use generated::language_client::LanguageClient;
pub use generated::language_server::LanguageServer;
pub use language_service::LanguageService;
pub use progress::{
    BeginProgress, PartialResultParams, PartialResults, ResultOf, ResultStream, WorkDoneParams,
    WorkDoneProgress, WorkDoneReport,
};
pub use remote_server::RemoteServer;
pub use session::{
    Diagnostics, OpenDocument, OpenError, ProgressState, ServerProgress, ServerProgressStream,
    ServerSession, SessionBuilder, ShutdownError, StartError,
};
