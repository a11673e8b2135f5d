//! The OpenRPC document of a server, fetched with `rpc.discover` or read from a file.

use std::path::PathBuf;

use antiphon::openrpc::Document;
use antiphon::{CallError, Client, Code, ErrorChain, Invocation};
use clap::Args;

use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::open_connection::OpenConnection;

/// The method that returns the document, defined by OpenRPC.
pub(crate) const METHOD: &str = "rpc.discover";

/// The `--schema` flag.
#[derive(Debug, Default, Args)]
pub(crate) struct SchemaArgs {
    /// Read the OpenRPC document from this file instead of calling rpc.discover
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl SchemaArgs {
    /// Reads the document from the file, if one is given.
    pub(crate) fn read(&self) -> Result<Option<Document>, CommandError> {
        let Some(path) = &self.schema else { return Ok(None) };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CommandError::cannot_read(path, &error))?;
        match Document::parse(&text) {
            Ok(document) => Ok(Some(document)),
            Err(error) => Err(CommandError::usage(format!("{name}: {}", ErrorChain(&error)))
                .hint("--schema requires an OpenRPC document, such as rpc.discover returns")),
        }
    }
}

/// Passes the document of the file or of the server to `show`.
pub(crate) async fn with_document(
    connect: &ConnectArgs,
    schema: &SchemaArgs,
    show: impl FnOnce(&Document) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    match schema.read()? {
        Some(document) => show(&document),
        None => {
            let fetched = async |connection: &mut OpenConnection| fetch(&connection.client).await;
            connect.with_client(|_, _| {}, fetched, |document| show(&document)).await
        }
    }
}

/// Fetches the document from the server.
pub(crate) async fn fetch(client: &Client) -> Result<Document, CommandError> {
    let reply = client.caller().send(Invocation::new(METHOD, None)).await;
    let reply = reply.map_err(|error| match error {
        CallError::Rpc(error) if error.code == Code::METHOD_NOT_FOUND => {
            let what = format!("the server does not support {METHOD}");
            CommandError::new(Exit::PeerError, what)
                .hint("if it publishes an OpenRPC document, use --schema FILE")
        }
        other => CommandError::from(other).about(METHOD),
    })?;
    Document::parse(reply.as_str()).map_err(|error| {
        CommandError::new(Exit::Protocol, format!("{METHOD}: {}", ErrorChain(&error)))
            .hint("--schema FILE reads an OpenRPC document from a file")
    })
}
