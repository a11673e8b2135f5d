//! Work-done progress on the server: `begin`, any number of `report`, and `end`.

use std::sync::Arc;

use antiphon::{BoxFuture, CallError};
use tokio_util::sync::CancellationToken;

use super::report_line::ReportLine;
use super::reporters::Registered;
use crate::Editor;
use crate::types::{
    ProgressToken, WorkDoneProgressBegin, WorkDoneProgressCreateParams, WorkDoneProgressReport,
};

/// A builder for progress. The progress begins when the builder is awaited. Created by [`Editor::progress`] and
/// [`Editor::create_progress`].
#[derive(Debug)]
#[must_use = "progress begins when this is awaited"]
pub struct BeginProgress {
    editor: Editor,
    token: TokenSource,
    begin: WorkDoneProgressBegin,
}

/// The origin of the token.
#[derive(Debug)]
enum TokenSource {
    /// A request. `None` if the caller wants no progress.
    Request(Option<ProgressToken>),
    /// This server, which first creates the token at the editor.
    Created,
}

impl BeginProgress {
    pub(crate) fn of_request(editor: Editor, token: Option<ProgressToken>, title: String) -> Self {
        let begin = WorkDoneProgressBegin { title, ..Default::default() };
        Self { editor, token: TokenSource::Request(token), begin }
    }

    pub(crate) fn created(editor: Editor, title: String) -> Self {
        let begin = WorkDoneProgressBegin { title, ..Default::default() };
        Self { editor, token: TokenSource::Created, begin }
    }

    /// Sets a message that the editor shows next to the title.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.begin.message = Some(message.into());
        self
    }

    /// Sets the first percentage, usually 0. Without it, editors may ignore the percentages of later reports.
    pub fn percentage(mut self, percentage: u32) -> Self {
        self.begin.percentage = Some(percentage.min(100));
        self
    }

    /// Lets the editor show a button that cancels the work; see [`WorkDoneProgress::cancellation`].
    pub fn cancellable(mut self) -> Self {
        self.begin.cancellable = Some(true);
        self
    }

    async fn begin(self) -> Result<WorkDoneProgress, CallError> {
        let Self { editor, token, begin } = self;
        let percentage = begin.percentage.unwrap_or_default();
        let cancellation = CancellationToken::new();
        let is_created = matches!(token, TokenSource::Created);
        let token = match token {
            TokenSource::Request(None) => return Ok(WorkDoneProgress::silent()),
            TokenSource::Created if !editor.reporters().can_create() => {
                return Ok(WorkDoneProgress::silent());
            }
            TokenSource::Request(token) => token,
            TokenSource::Created => None,
        };
        let peer = editor.peer().clone();
        let (line, registered) = editor.reporters().register(peer, token, cancellation.clone());
        if is_created {
            let params = WorkDoneProgressCreateParams::new(line.token.clone());
            editor.work_done_progress_create(params).await?;
        }
        line.begin(begin).await?;
        let shown = Shown { line, _registered: registered };
        Ok(WorkDoneProgress { shown: Some(shown), percentage, cancellation })
    }
}

impl IntoFuture for BeginProgress {
    type Output = Result<WorkDoneProgress, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// Progress that the editor shows to the user. See [`Editor::progress`] and [`Editor::create_progress`].
///
/// It ends with [`end`](Self::end) or when it is dropped, so it also ends if the method returns early, panics or is
/// cancelled. The progress of a request ends before the response, even if a task still holds it. After the end, or if
/// the editor does not want progress, the methods do nothing. Progress that begins after the response does nothing
/// either.
#[derive(Debug)]
pub struct WorkDoneProgress {
    shown: Option<Shown>,
    /// The highest percentage of all reports.
    percentage: u32,
    cancellation: CancellationToken,
}

/// Progress that has begun.
#[derive(Debug)]
struct Shown {
    line: Arc<ReportLine>,
    _registered: Registered,
}

impl WorkDoneProgress {
    fn silent() -> Self {
        Self { shown: None, percentage: 0, cancellation: CancellationToken::new() }
    }

    /// Reports a message and an optional percentage: `report("3 of 7 files", 42)`, `report("linking", None)`.
    ///
    /// The percentage never decreases: a lower value is replaced by the previous one. Values above 100 are sent as 100.
    /// Waits while the write queue is full.
    pub async fn report(
        &mut self,
        message: impl Into<String>,
        percentage: impl Into<Option<u32>>,
    ) -> Result<(), CallError> {
        self.send(Some(message.into()), percentage.into()).await
    }

    /// Reports a percentage, and keeps the message.
    pub async fn percentage(&mut self, percentage: u32) -> Result<(), CallError> {
        self.send(None, Some(percentage)).await
    }

    /// Ends the progress with a last message. Drop it to end it without one.
    ///
    /// # Cancel safety
    /// If the future is dropped, the progress ends without a message.
    pub async fn end(self, message: impl Into<String>) -> Result<(), CallError> {
        if let Some(shown) = &self.shown {
            shown.line.finish(message.into()).await?;
        }
        Ok(())
    }

    /// Returns whether the editor shows this progress. If not, you can skip the work of building messages.
    pub fn is_shown(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.line.has_ended())
    }

    /// Returns a token that is cancelled when the editor sends `window/workDoneProgress/cancel` for this progress.
    /// Cancellation does not end the progress: your code decides when to stop.
    ///
    /// The cancellation is a notification, so it waits while the handler of an earlier notification runs. In
    /// notification handlers, start long work with [`Context::spawn`](antiphon::Context::spawn).
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    async fn send(
        &mut self,
        message: Option<String>,
        percentage: Option<u32>,
    ) -> Result<(), CallError> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let percentage = percentage.map(|percentage| percentage.min(100).max(self.percentage));
        self.percentage = percentage.unwrap_or(self.percentage);
        shown.line.send(WorkDoneProgressReport { message, percentage, ..Default::default() }).await
    }
}

impl Drop for WorkDoneProgress {
    fn drop(&mut self) {
        if let Some(shown) = &self.shown {
            shown.line.end();
        }
    }
}
