//! The prompt of a session.
//!
//! The editor reads the next line while a call runs. So Ctrl-C can cancel the call, and lines that are typed early wait
//! for it. All output appears above the edited line.

mod completer;
mod editor;
mod history;
mod names;
mod terminal_mode;

use std::collections::VecDeque;

use rustyline::completion::FilenameCompleter;
use tokio::signal::ctrl_c;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Duration, timeout};

use self::completer::{LineCompleter, Vocabulary};
use self::editor::{Editor, Input};
use self::history::History;
use super::executor;
use super::line::Line;
use super::report::Report;
use super::script::{LineEnd, LineOrigin, run_line};
use crate::answers::{Rule, UnansweredCall};
use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::open_connection::OpenConnection;
use crate::openrpc::discovery::{self, SchemaArgs};
use crate::output;

const PROMPT: &str = "antiphon> ";

/// The time limit of `rpc.discover`, whose result is only used for completion.
const DISCOVERY: Duration = Duration::from_secs(5);

/// A session at a prompt.
pub(super) struct Interactive<'a> {
    pub(super) connect: &'a ConnectArgs,
    pub(super) schema: &'a SchemaArgs,
    pub(super) report: Report,
    pub(super) keeps_history: bool,
}

impl Interactive<'_> {
    /// Runs lines until the user ends the session. Returns `None` if the terminal does not support line editing.
    pub(super) async fn run(
        &self,
        connection: &mut OpenConnection,
        unanswered: Receiver<UnansweredCall>,
    ) -> Result<Option<Exit>, CommandError> {
        let vocabulary = Vocabulary::default();
        let methods = names::methods(connection.dialect, connection.initialized.as_ref());
        vocabulary.add_methods(methods);
        let document = self.schema.read()?;
        let completer = LineCompleter {
            vocabulary: vocabulary.clone(),
            inbox: connection.inbox.clone(),
            files: FilenameCompleter::new(),
        };
        let history = History::new(self.keeps_history, connection.dialect);
        let Ok(editor) = Editor::start(completer, history) else { return Ok(None) };
        match document {
            Some(document) => vocabulary.set_document(document),
            None => discover(connection, &vocabulary),
        }
        let mut prompt = Prompt::new(editor, unanswered);
        let exit = self.run_lines(connection, &mut prompt, &vocabulary).await;
        prompt.editor.end();
        exit.map(Some)
    }

    async fn run_lines(
        &self,
        connection: &mut OpenConnection,
        prompt: &mut Prompt,
        vocabulary: &Vocabulary,
    ) -> Result<Exit, CommandError> {
        note("`help` lists the commands, Tab completes, Ctrl-D ends the session");
        let mut exit = Exit::Success;
        let mut is_lost = false;
        let mut number = 0;
        loop {
            vocabulary.set_variables(&connection.variables);
            let client = connection.client.clone();
            let text = tokio::select! {
                text = prompt.line() => text,
                failure = executor::lost(&client), if !is_lost && client.peer().is_some() => {
                    is_lost = true;
                    exit = failure.hint("`exit` or Ctrl-D ends the session").report();
                    continue;
                }
            };
            let Some(text) = text else { return Ok(exit) };
            number += 1;
            let origin = LineOrigin { number, name: None };
            match self.run_cancellable(connection, prompt, &origin, &text).await? {
                Some(LineEnd::Last) => return Ok(exit),
                Some(LineEnd::Next | LineEnd::Failed(_)) => {}
                None => note("cancelled"),
            }
        }
    }

    /// Runs a line. Returns `None` if the user cancels it.
    async fn run_cancellable(
        &self,
        connection: &mut OpenConnection,
        prompt: &mut Prompt,
        origin: &LineOrigin,
        text: &str,
    ) -> Result<Option<LineEnd>, CommandError> {
        let run = run_line(connection, self.connect, self.report, origin, text);
        tokio::select! {
            // A line that finishes at once needs no second prompt.
            biased;
            end = run => end.map(Some),
            () = prompt.interrupted() => Ok(None),
        }
    }
}

/// Fetches the OpenRPC document while the user types.
fn discover(connection: &OpenConnection, vocabulary: &Vocabulary) {
    // With a dialect, the methods are already known.
    if connection.dialect.is_some() {
        return;
    }
    let (client, vocabulary) = (connection.client.clone(), vocabulary.clone());
    tokio::spawn(async move {
        if let Ok(Ok(document)) = timeout(DISCOVERY, discovery::fetch(&client)).await {
            vocabulary.set_document(document);
        }
    });
}

/// Returns whether a line ends the session.
fn is_exit(line: &str) -> bool {
    matches!(Line::parse(line), Ok(Some(line)) if line.ends())
}

/// The prompt, with the lines that were typed while another line ran.
struct Prompt {
    editor: Editor,
    typed_ahead: VecDeque<Input>,
    /// Whether `exit` was typed, after which no line is read.
    is_last: bool,
    /// The calls from the server that wait for the user's answer. Without `--ask`, there are none.
    unanswered: Receiver<UnansweredCall>,
}

impl Prompt {
    fn new(editor: Editor, unanswered: Receiver<UnansweredCall>) -> Self {
        Self { editor, typed_ahead: VecDeque::new(), is_last: false, unanswered }
    }

    /// Returns the next line; `None` after the last one.
    ///
    /// # Cancel safety
    /// No line is lost.
    async fn line(&mut self) -> Option<String> {
        loop {
            match self.typed_ahead.pop_front() {
                None => {
                    let input = self.input().await;
                    self.keep(input);
                }
                Some(Input::Line(line)) => return Some(line),
                Some(Input::Interrupt) => {}
                Some(Input::End) => return None,
            }
        }
    }

    /// Waits for Ctrl-C or the end of the input. Ctrl-C discards the lines that were typed early.
    async fn interrupted(&mut self) {
        loop {
            let input = tokio::select! {
                input = self.input() => input,
                // While no prompt is shown, Ctrl-C is a signal.
                _ = ctrl_c() => Input::Interrupt,
            };
            if let Input::Line(_) = input {
                self.keep(input);
                continue;
            }
            self.typed_ahead.clear();
            self.is_last = false;
            return self.keep(input);
        }
    }

    /// Requests a line, and returns the action of the user.
    async fn input(&mut self) -> Input {
        if self.is_last {
            // While the last line runs, only a signal can cancel it.
            std::future::pending::<()>().await;
        }
        self.editor.next(PROMPT).await
    }

    /// Queues the lines of an input. A paste may contain several lines.
    fn keep(&mut self, input: Input) {
        let Input::Line(text) = input else {
            self.is_last |= matches!(input, Input::End);
            return self.typed_ahead.push_back(input);
        };
        self.is_last |= text.lines().any(is_exit);
        for line in text.lines() {
            match line.trim().strip_prefix("reply ") {
                // Handled at once, because the running call may wait for this answer.
                Some(answer) if !self.unanswered.is_closed() => match self.reply(answer.trim()) {
                    Ok(method) => note(&format!("{} is answered", output::visible(&method))),
                    Err(failure) => _ = failure.report(),
                },
                _ => self.typed_ahead.push_back(Input::Line(line.to_owned())),
            }
        }
    }

    /// Answers the oldest waiting call, and returns its method.
    fn reply(&mut self, answer: &str) -> Result<String, CommandError> {
        let outcome = Rule::parse_answer(answer).map_err(CommandError::usage)?;
        while let Ok(call) = self.unanswered.try_recv() {
            // It fails if the server no longer waits.
            if call.reply.send(outcome.clone()).is_ok() {
                return Ok(call.method);
            }
        }
        Err(CommandError::usage("no call of the server waits for an answer"))
    }
}

fn note(text: &str) {
    output::note(&output::dim(text));
}
