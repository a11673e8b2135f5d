//! What the other side says about itself: its OpenRPC document, asked for or read from a file.

use std::path::PathBuf;

use antiphon::openrpc::{Document, DocumentError};
use antiphon::{CallError, Client, Code, Invocation};
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::remote::Remote;

/// The method that OpenRPC has for it.
pub(crate) const METHOD: &str = "rpc.discover";

/// Where the document is, if not with the other side.
#[derive(Debug, Default, Args)]
pub(crate) struct Schema {
    /// Read what the methods are from this OpenRPC document, instead of asking
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl Schema {
    /// The document of the file, where one is named.
    pub(crate) fn read(&self) -> Result<Option<Document>, Failure> {
        let Some(path) = &self.schema else { return Ok(None) };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
        match Document::parse(&text) {
            Ok(document) => Ok(Some(document)),
            Err(error) => Err(Failure::usage(format!("{name}: {}", worded(&error)))
                .hint("--schema takes an OpenRPC document, as rpc.discover gives it")),
        }
    }
}

/// Shows something of the document, wherever it comes from.
pub(crate) async fn read(
    remote: &Remote,
    schema: &Schema,
    show: impl FnOnce(&Document) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    match schema.read()? {
        Some(document) => show(&document),
        None => {
            let asked = async |client: &Client| Ok(ask(client).await);
            remote.talk(|_, _| {}, asked, |document| show(&document?)).await
        }
    }
}

/// Asks the other side for it.
pub(crate) async fn ask(client: &Client) -> Result<Document, Failure> {
    let answer = client.caller().send(Invocation::new(METHOD, None)).await;
    let answer = answer.map_err(|error| match error {
        CallError::Rpc(error) if error.code == Code::METHOD_NOT_FOUND => {
            let what = format!("the other side does not describe itself: it has no {METHOD}");
            Failure::new(Exit::PeerError, what)
                .hint("where its makers publish an OpenRPC document, --schema FILE reads that")
        }
        other => Failure::from(other).about(METHOD),
    })?;
    Document::parse(answer.as_str()).map_err(|error| {
        Failure::new(Exit::Protocol, format!("{METHOD}: {}", worded(&error)))
            .hint("--schema FILE reads an OpenRPC document from a file")
    })
}

fn worded(error: &DocumentError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
