//! Work-done progress, as a server reports it: `begin`, any number of `report`, and `end`.

use std::sync::Arc;

use antiphon::{BoxFuture, CallError};
use tokio_util::sync::CancellationToken;

use super::report_line::ReportLine;
use super::reporters::Registered;
use crate::Editor;
use crate::types::{
    ProgressToken, WorkDoneProgressBegin, WorkDoneProgressCreateParams, WorkDoneProgressReport,
};

/// The settings of progress that begins when this is awaited. Created by [`Editor::progress`] and
/// [`Editor::create_progress`].
#[derive(Debug)]
#[must_use = "progress begins when this is awaited"]
pub struct BeginProgress {
    editor: Editor,
    token: Token,
    begin: WorkDoneProgressBegin,
}

/// Where the token comes from.
#[derive(Debug)]
enum Token {
    /// A request, whose caller may not want progress.
    Request(Option<ProgressToken>),
    /// This side, which tells the editor first.
    Created,
}

impl BeginProgress {
    pub(crate) fn of_request(editor: Editor, token: Option<ProgressToken>, title: String) -> Self {
        let begin = WorkDoneProgressBegin { title, ..Default::default() };
        Self { editor, token: Token::Request(token), begin }
    }

    pub(crate) fn created(editor: Editor, title: String) -> Self {
        let begin = WorkDoneProgressBegin { title, ..Default::default() };
        Self { editor, token: Token::Created, begin }
    }

    /// Adds a message, which the editor shows beside the title.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.begin.message = Some(message.into());
        self
    }

    /// Shows a percentage from the start, mostly 0. Without it, editors may ignore the percentages of later reports.
    pub fn percentage(mut self, percentage: u32) -> Self {
        self.begin.percentage = Some(percentage.min(100));
        self
    }

    /// Shows a button that cancels the work; see [`WorkDoneProgress::cancellation`].
    pub fn cancellable(mut self) -> Self {
        self.begin.cancellable = Some(true);
        self
    }

    async fn begin(self) -> Result<WorkDoneProgress, CallError> {
        let Self { editor, token, begin } = self;
        let percentage = begin.percentage.unwrap_or_default();
        let cancellation = CancellationToken::new();
        let is_created = matches!(token, Token::Created);
        let token = match token {
            Token::Request(None) => return Ok(WorkDoneProgress::silent()),
            Token::Created if !editor.reporters().can_create() => {
                return Ok(WorkDoneProgress::silent());
            }
            Token::Request(token) => token,
            Token::Created => None,
        };
        let peer = editor.peer().clone();
        let (line, registered) = editor.reporters().register(peer, token, cancellation.clone());
        if is_created {
            let params = WorkDoneProgressCreateParams::new(line.token.clone());
            editor.work_done_progress_create(params).await?;
        }
        line.send(begin).await?;
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
/// It ends with [`end`](Self::end), or when it is dropped. So it also ends if the method returns early, panics or is
/// cancelled. The progress of a request ends before the response, wherever it is. After the end, and if the editor does
/// not want progress, the methods do nothing.
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

    /// Reports a message, and a percentage if it is known: `report("3 of 7 files", 42)`,
    /// `report("linking", None)`.
    ///
    /// A percentage never falls and is at most 100: a lower one than before is sent as the one before. Waits while
    /// the write queue is full.
    pub async fn report(
        &mut self,
        message: impl Into<String>,
        percentage: impl Into<Option<u32>>,
    ) -> Result<(), CallError> {
        self.send(Some(message.into()), percentage.into()).await
    }

    /// Reports a percentage. The message stays.
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

    /// Whether the editor shows this progress. If not, messages need not be made.
    pub fn is_shown(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| !shown.line.has_ended())
    }

    /// A token that is cancelled when the editor sends `window/workDoneProgress/cancel` for this progress.
    /// The work decides what follows; the progress goes on until it ends.
    ///
    /// The notification arrives in its order: while the handler of an earlier notification runs, it waits. So start
    /// long work in [`Context::spawn`](antiphon::Context::spawn) there.
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
