//! The handle of the editor, for a server.

use std::sync::Arc;

use antiphon::{Call, CallError, Peer};
use serde::Serialize;

use crate::progress::{
    BeginProgress, PartialResultParams, PartialResults, Reporters, WorkDoneParams,
};
use crate::types::{LogMessageParams, MessageType, Notification, Request, ShowMessageParams};

/// A typed handle of the editor: one method for each request and notification that a server sends. Cheap to
/// clone. [`serve_stdio`](crate::serve_stdio) and [`LanguageService::for_peer`](crate::LanguageService::for_peer)
/// create it.
///
/// A request is a [`Call`]: it is sent when it is awaited, and has the options of a call, such as a timeout. A
/// notification returns when it is queued.
///
/// ```
/// use antiphon::CallError;
/// use antiphon_lsp::Editor;
/// use antiphon_lsp::types::{ConfigurationItem, ConfigurationParams, MessageType};
///
/// async fn read_settings(editor: &Editor) -> Result<(), CallError> {
///     let item = ConfigurationItem { section: Some("toml".into()), ..Default::default() };
///     let settings = editor.configuration(ConfigurationParams { items: vec![item] }).await?;
///     editor.log(MessageType::Info, format!("settings: {settings:?}")).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Editor {
    peer: Peer,
    reporters: Arc<Reporters>,
}

impl Editor {
    pub(crate) fn new(peer: Peer, reporters: Arc<Reporters>) -> Self {
        Self { peer, reporters }
    }

    /// Returns the connection to the editor, for methods that are not part of the protocol.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Writes a line to the log that the editor shows for this server.
    pub async fn log(
        &self,
        kind: MessageType,
        message: impl Into<String>,
    ) -> Result<(), CallError> {
        self.log_message(LogMessageParams { kind, message: message.into() }).await
    }

    /// Shows a message to the user.
    pub async fn show(
        &self,
        kind: MessageType,
        message: impl Into<String>,
    ) -> Result<(), CallError> {
        self.show_message(ShowMessageParams { kind, message: message.into() }).await
    }

    /// Begins to report the progress of a request. If the request has no `workDoneToken`, the reports do nothing.
    ///
    /// All reports of a request precede its response. The progress ends before the response, even if a task still holds
    /// the [`WorkDoneProgress`](crate::WorkDoneProgress). Progress that begins after the response sends nothing.
    ///
    /// ```
    /// use antiphon::ErrorObject;
    /// use antiphon_lsp::Editor;
    /// use antiphon_lsp::types::{Location, ReferenceParams};
    ///
    /// # async fn search(_: &str) -> Vec<Location> { vec![] }
    /// async fn references(
    ///     editor: &Editor,
    ///     params: ReferenceParams,
    /// ) -> Result<Option<Vec<Location>>, ErrorObject> {
    ///     let mut progress = editor.progress(&params, "Searching").percentage(0).await?;
    ///     let mut found = search("src").await;
    ///     progress.report("tests", 50).await?;
    ///     found.extend(search("tests").await);
    ///     progress.end(format!("{} found", found.len())).await?;
    ///     Ok(Some(found))
    /// }
    /// ```
    pub fn progress(
        &self,
        params: &impl WorkDoneParams,
        title: impl Into<String>,
    ) -> BeginProgress {
        let token = params.work_done_token().cloned();
        BeginProgress::of_request(self.clone(), token, title.into())
    }

    /// Begins to report the progress of work that does not belong to a request. Sends `window/workDoneProgress/create`
    /// to the editor first. If the editor has not announced `window.workDoneProgress`, nothing is sent, and the reports
    /// do nothing.
    ///
    /// Do not call this before `initialized`: editors accept no requests until then.
    ///
    /// ```
    /// use antiphon::Context;
    /// use antiphon_lsp::Editor;
    ///
    /// # async fn index(_: u32) {}
    /// /// Called in `initialized`. Indexes in a task, so requests are served at the same time.
    /// fn start_indexing(editor: Editor, cx: &Context) -> Result<(), antiphon::SpawnError> {
    ///     cx.spawn(async move {
    ///         let begin = editor.create_progress("Indexing").percentage(0).cancellable();
    ///         let Ok(mut progress) = begin.await else { return };
    ///         for percentage in 1..=100 {
    ///             if progress.cancellation().is_cancelled() {
    ///                 return;
    ///             }
    ///             index(percentage).await;
    ///             let _ = progress.percentage(percentage).await;
    ///         }
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// Awaiting the result fails if the editor responds with an error, or if the connection has ended.
    pub fn create_progress(&self, title: impl Into<String>) -> BeginProgress {
        BeginProgress::created(self.clone(), title.into())
    }

    /// Begins to send the result of a request in parts. If the request has a `partialResultToken`, each part is sent
    /// immediately, and the response is empty, as the protocol requires. Otherwise the response contains all parts. A
    /// part that is added after the response is not sent.
    ///
    /// ```
    /// use antiphon::ErrorObject;
    /// use antiphon_lsp::Editor;
    /// use antiphon_lsp::types::{Location, ReferenceParams};
    ///
    /// # async fn search(_: &str) -> Vec<Location> { vec![] }
    /// async fn references(
    ///     editor: &Editor,
    ///     params: ReferenceParams,
    /// ) -> Result<Option<Vec<Location>>, ErrorObject> {
    ///     let mut results = editor.partial_results(&params);
    ///     for folder in ["src", "tests"] {
    ///         results.send(search(folder).await).await?;
    ///     }
    ///     results.finish()
    /// }
    /// ```
    pub fn partial_results<P: PartialResultParams>(
        &self,
        params: &P,
    ) -> PartialResults<P::Request> {
        PartialResults::new(self, params)
    }

    pub(crate) fn reporters(&self) -> &Arc<Reporters> {
        &self.reporters
    }

    /// Calls a typed request. Implement [`Request`] for your own methods.
    pub fn request<R: Request>(&self, params: R::Params) -> Call<R::Result> {
        self.call(R::METHOD.as_str(), params)
    }

    /// Sends a typed notification. Implement [`Notification`] for your own methods.
    pub async fn notification<N: Notification>(&self, params: N::Params) -> Result<(), CallError> {
        self.notify(N::METHOD.as_str(), params).await
    }

    pub(crate) fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        self.peer.call(method, params)
    }

    pub(crate) async fn notify(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<(), CallError> {
        self.peer.notify(method, params).await
    }
}
