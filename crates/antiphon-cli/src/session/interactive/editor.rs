//! The line editor, which runs in its own thread.
//!
//! It reads a line only on request. While it reads, the terminal sends no signals. So this process receives Ctrl-C as a
//! key, and a server that is a child process does not receive it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustyline::config::{Behavior, BellStyle, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ExternalPrinter as _, Result};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::completer::LineCompleter;
use super::history::{self, History};
use super::terminal_mode::TerminalMode;
use crate::{output, prompt_printer};

/// The time limit to print the queued output at the end. The editor prints nothing while it waits for a key.
const PRINT_TIMEOUT: Duration = Duration::from_secs(1);

/// An action of the user at the prompt.
#[derive(Debug)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D on an empty line, or the end of the terminal.
    End,
}

/// A line editor.
pub(super) struct Editor {
    /// `None` after the end.
    prompts: Option<Sender<String>>,
    inputs: UnboundedReceiver<Input>,
    /// Whether a line is requested and not yet read.
    is_reading: bool,
    reader: thread::JoinHandle<()>,
    /// Disconnected when all output is printed.
    printing: Receiver<()>,
    /// The mode of the terminal before the start.
    mode: Option<TerminalMode>,
}

type LineEditor = rustyline::Editor<LineCompleter, FileHistory>;

impl Editor {
    /// Starts the editor. From now on, output appears above the edited line.
    ///
    /// # Errors
    /// Fails if the terminal cannot move its cursor.
    pub(super) fn start(completer: LineCompleter, history: History) -> Result<Self> {
        let mode = TerminalMode::current();
        let mut editor = line_editor(completer)?;
        let mut printer = editor.create_external_printer()?;
        if let Some(path) = &history.file {
            // Before the first session, the file does not exist.
            let _ = editor.load_history(path);
        }
        let texts = prompt_printer::install();
        let (prints, printing) = channel();
        thread::spawn(move || {
            let _prints = prints;
            for text in texts {
                // It fails only if the terminal is gone.
                let _ = printer.print(text + "\n");
            }
        });
        let (prompts, asked) = channel::<String>();
        let (sender, inputs) = unbounded_channel();
        let reader = thread::spawn(move || {
            for prompt in asked {
                if !read(&mut editor, &prompt, &history, &sender) {
                    break;
                }
            }
        });
        Ok(Self { prompts: Some(prompts), inputs, is_reading: false, reader, printing, mode })
    }

    /// Shows a prompt and reads a line, unless one is already requested. Returns the action of the user.
    ///
    /// # Cancel safety
    /// The line stays requested, and the next call returns it.
    pub(super) async fn next(&mut self, prompt: &str) -> Input {
        if let Some(prompts) = self.prompts.as_ref().filter(|_| !self.is_reading) {
            self.is_reading = true;
            // It fails only after the end of the terminal, which `recv` reports.
            let _ = prompts.send(prompt.to_owned());
        }
        let input = self.inputs.recv().await.unwrap_or(Input::End);
        self.is_reading = false;
        input
    }

    /// Prints the queued output and restores the terminal.
    pub(super) fn end(mut self) {
        self.prompts = None;
        prompt_printer::remove();
        if self.is_reading {
            // The reader waits for a key, so it cannot be joined.
            let _ = self.printing.recv_timeout(PRINT_TIMEOUT);
            self.mode.into_iter().for_each(TerminalMode::restore);
        } else {
            let _ = self.printing.recv();
            let _ = self.reader.join();
        }
    }
}

fn line_editor(completer: LineCompleter) -> Result<LineEditor> {
    let config = Config::builder()
        .max_history_size(history::MOST)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .bell_style(BellStyle::None)
        // The prompt goes to the terminal even if stdout is a file.
        .behavior(Behavior::PreferTerm)
        .build();
    let mut editor = LineEditor::with_config(config)?;
    editor.set_helper(Some(completer));
    Ok(editor)
}

/// Reads a line. Returns false after the last one.
fn read(
    editor: &mut LineEditor,
    prompt: &str,
    history: &History,
    inputs: &UnboundedSender<Input>,
) -> bool {
    let input = match editor.readline(prompt) {
        Ok(line) => {
            remember(editor, &line, history);
            Input::Line(line)
        }
        Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Input::Interrupt,
        Err(_) => Input::End,
    };
    let goes_on = !matches!(input, Input::End);
    inputs.send(input).is_ok() && goes_on
}

/// Saves a line to the history at once, so no line is lost if the session is killed.
fn remember(editor: &mut LineEditor, line: &str, history: &History) {
    let is_added = history.accepts(line) && editor.add_history_entry(line).unwrap_or(false);
    if let Some(path) = history.file.as_ref().filter(|_| is_added)
        && let Err(error) = editor.append_history(path)
    {
        let name = path.display();
        output::note(&output::dim(&format!("cannot write {name}: {error}; --no-history skips it")));
    }
}
