//! The steps before the first call on a connection and after the last one: the handshake of the dialect, the documents
//! of `--open`, and the lines of `--init`.
//!
//! Over HTTP there is no connection, so there is no handshake.

pub(crate) mod document;
mod lsp;
mod mcp;

use std::path::{Path, PathBuf};

use antiphon::{Client, Endpoint, Invocation, Params, RawJson};
use clap::Args;
use serde_json::{Value, json};

pub(crate) use self::lsp::OpenDocuments;
use crate::answers::Answers;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::open_connection::OpenConnection;
use crate::session;

/// The flags of the handshake.
#[derive(Debug, Args)]
pub(crate) struct HandshakeArgs {
    /// Skip the handshake of --dialect lsp and mcp
    #[arg(long, help_heading = "Handshake")]
    no_init: bool,
    /// Use this directory as the workspace of --dialect lsp, or the root of --dialect mcp
    #[arg(long, value_name = "DIR", help_heading = "Handshake", hide_short_help = true)]
    root: Option<PathBuf>,
    /// Send these initializationOptions with --dialect lsp
    #[arg(long, value_name = "JSON", help_heading = "Handshake", hide_short_help = true)]
    #[arg(value_parser = json_text)]
    init_options: Option<RawJson>,
    /// Open this file on the server before the first call, with --dialect lsp [repeatable]
    #[arg(long, value_name = "FILE", help_heading = "Handshake")]
    open: Vec<PathBuf>,
    /// Run this line of `antiphon session`, or the lines of a file, before the first call [repeatable]
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Handshake")]
    init: Vec<String>,
}

fn json_text(text: &str) -> Result<RawJson, String> {
    RawJson::parse(text.to_owned()).map_err(|fault| format!("not JSON: {fault}"))
}

impl HandshakeArgs {
    /// Returns the directory of `--root`.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Whether there are lines of `--init`.
    pub(crate) fn has_lines(&self) -> bool {
        !self.init.is_empty()
    }

    /// Returns the part of the handshake that a new connection would not repeat after a reconnect.
    pub(crate) fn not_repeated(
        &self,
        endpoint: &Endpoint,
        dialect: Option<DialectName>,
    ) -> Option<&'static str> {
        match dialect {
            _ if !self.init.is_empty() => Some("the lines of --init"),
            _ if !self.open.is_empty() => Some("the documents of --open"),
            _ if !self.does_handshake(endpoint) => None,
            Some(DialectName::Lsp) => Some("the handshake of --dialect lsp"),
            Some(DialectName::Mcp) => Some("the handshake of --dialect mcp"),
            _ => None,
        }
    }

    /// Returns the flags without the documents of `--open` and the lines of `--init`.
    pub(crate) fn without_open_and_init(self) -> Self {
        Self { open: Vec::new(), init: Vec::new(), ..self }
    }

    /// Prepares a new connection for the first call: does the handshake, opens the documents of `--open` and runs the
    /// lines of `--init`.
    pub(crate) async fn prepare(
        &self,
        connection: &mut OpenConnection,
        endpoint: &Endpoint,
    ) -> Result<(), CommandError> {
        let OpenConnection { client, answers, dialect, .. } = &*connection;
        if self.does_handshake(endpoint) {
            connection.initialized = match dialect {
                Some(DialectName::Lsp) => Some(self.initialize_lsp(client, endpoint).await?),
                Some(DialectName::Mcp) => Some(initialize_mcp(client, answers).await?),
                _ => None,
            };
        }
        for path in &self.open {
            connection.open_document(path).await?;
        }
        session::run_init(connection, &self.init).await
    }

    /// Ends the session before the connection is closed.
    pub(crate) async fn end(
        &self,
        client: &Client,
        endpoint: &Endpoint,
        dialect: Option<DialectName>,
    ) {
        if self.does_handshake(endpoint) && dialect == Some(DialectName::Lsp) {
            lsp::shut_down(client).await;
        }
    }

    fn does_handshake(&self, endpoint: &Endpoint) -> bool {
        !self.no_init && !matches!(endpoint, Endpoint::Http { .. })
    }

    async fn initialize_lsp(
        &self,
        client: &Client,
        endpoint: &Endpoint,
    ) -> Result<RawJson, CommandError> {
        let root = self.root.as_deref().unwrap_or(Path::new("."));
        let params = lsp::initialize_params(root, endpoint, self.init_options.as_ref())?;
        let initialize = Invocation::new("initialize", Some(params));
        let reply = client.caller().send(initialize).await;
        let result = reply.map_err(|error| about_handshake(lsp::refused(error)))?;
        lsp::send_initialized(client).await.map_err(|error| about_handshake(error.into()))?;
        Ok(result)
    }
}

async fn initialize_mcp(client: &Client, answers: &Answers) -> Result<RawJson, CommandError> {
    let initialize = Invocation::new("initialize", Some(mcp::initialize_params(answers)?));
    let result = client.caller().send(initialize).await;
    let result = result.map_err(|error| about_handshake(mcp::refused(error)))?;
    mcp::accept(client, &result).await.map_err(about_handshake)?;
    Ok(result)
}

fn about_handshake(failure: CommandError) -> CommandError {
    failure.about("the handshake failed (--no-init skips it)")
}

/// Fails unless the dialect is LSP.
pub(crate) fn check_dialect(dialect: Option<DialectName>) -> Result<(), CommandError> {
    if dialect == Some(DialectName::Lsp) {
        return Ok(());
    }
    Err(CommandError::usage("documents can be opened only on a language server")
        .hint("add --dialect lsp"))
}

fn client_info() -> Value {
    json!({ "name": "antiphon", "version": env!("CARGO_PKG_VERSION") })
}

/// Encodes the params of a method.
fn params(method: &str, value: &impl serde::Serialize) -> Result<Params, CommandError> {
    let params = Params::encode(value).ok().flatten();
    params.ok_or_else(|| CommandError::usage(format!("the params of `{method}` are not an Object")))
}
