//! A connection of a command: the client, the answers to its server, and the open documents.

use std::path::Path;

use antiphon::{CallError, Client, Invocation, RawJson};
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::handshake::document::{FilePosition, TextDocument};
use crate::handshake::{OpenDocuments, check_dialect};
use crate::session::{Inbox, Variables};

/// A connection of a command, after its handshake.
pub(crate) struct OpenConnection {
    pub(crate) client: Client,
    pub(crate) answers: Answers,
    pub(crate) dialect: Option<DialectName>,
    /// The result of `initialize`.
    pub(crate) initialized: Option<RawJson>,
    /// The messages from the server.
    pub(crate) inbox: Inbox,
    /// The stored results of a session.
    pub(crate) variables: Variables,
    documents: OpenDocuments,
}

impl OpenConnection {
    pub(crate) fn new(
        client: Client,
        answers: Answers,
        dialect: Option<DialectName>,
        inbox: Inbox,
    ) -> Self {
        Self {
            client,
            answers,
            dialect,
            initialized: None,
            inbox,
            variables: Variables::default(),
            documents: OpenDocuments::default(),
        }
    }

    /// Sends a call.
    pub(crate) async fn call(&self, call: Invocation) -> Result<RawJson, CallError> {
        self.client.caller().send(call).await
    }

    /// Opens a file on a language server. Returns the identifier of the document.
    pub(crate) async fn open_document(&mut self, path: &Path) -> Result<Value, CommandError> {
        check_dialect(self.dialect)?;
        let document = TextDocument::read(path)?;
        self.documents.open(&self.client, &document).await
    }

    /// Opens the file of a position. Returns the params that name the document and the position.
    pub(crate) async fn params_at(
        &mut self,
        at: &FilePosition,
    ) -> Result<Vec<(&'static str, Value)>, CommandError> {
        check_dialect(self.dialect).map_err(|failure| failure.about("--at"))?;
        let document = TextDocument::read(&at.file)?;
        let position = at.position(&document)?;
        self.documents.open(&self.client, &document).await?;
        let identifier = ("textDocument", json!({ "uri": document.uri }));
        let position = position.map(|position| ("position", position));
        Ok(std::iter::once(identifier).chain(position).collect())
    }
}
