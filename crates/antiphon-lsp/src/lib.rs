#![doc = include_str!("../docs/crate.md")]

mod changed_ranges;
mod channel;
#[cfg(test)]
mod contract_tests;
mod defaults;
pub mod documents;
mod editor;
mod editor_process;
pub mod error;
mod faults;
mod file_uri;
mod generated;
mod language_service;
mod lifecycle;
mod methods;
mod progress;
mod remote_server;
mod routes;
mod session;
mod single_connection;

pub use channel::{Channel, ChannelServer, InvalidChannel, serve_stdio};
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
    ApplyError, Diagnostics, OpenDocument, OpenError, ProgressState, ServerProgress,
    ServerProgressStream, ServerSession, SessionBuilder, ShutdownError, StartError,
};

/// Compiles and runs the examples of the documents as doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/coming-from-tower-lsp.md")]
    struct ComingFromTowerLsp;
}
