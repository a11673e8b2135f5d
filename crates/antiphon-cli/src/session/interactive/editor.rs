//! The line editor, which runs in its own thread.
//!
//! It reads a line only on request. While it reads, the terminal sends no signals. So this process receives Ctrl-C as a
//! key, and a server that is a child process does not receive it.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustyline::config::{Behavior, BellStyle, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ExternalPrinter as _, Result};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::completer::LineCompleter;
use super::history;
use crate::{output, prompt_printer};

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
    threads: Vec<thread::JoinHandle<()>>,
}

type LineEditor = rustyline::Editor<LineCompleter, FileHistory>;

impl Editor {
    /// Starts the editor. From now on, output appears above the edited line.
    ///
    /// # Errors
    /// Fails if the terminal cannot move its cursor.
    pub(super) fn start(completer: LineCompleter, history: Option<PathBuf>) -> Result<Self> {
        let mut editor = line_editor(completer)?;
        let mut printer = editor.create_external_printer()?;
        if let Some(path) = &history {
            // Before the first session, the file does not exist.
            let _ = editor.load_history(path);
        }
        let texts = prompt_printer::install();
        let printing = thread::spawn(move || {
            for text in texts {
                // It fails only if the terminal is gone.
                let _ = printer.print(text + "\n");
            }
        });
        let (prompts, asked) = channel::<String>();
        let (sender, inputs) = unbounded_channel();
        let reading = thread::spawn(move || {
            for prompt in asked {
                if !read(&mut editor, &prompt, history.as_ref(), &sender) {
                    break;
                }
            }
        });
        Ok(Self { prompts: Some(prompts), inputs, threads: vec![reading, printing] })
    }

    /// Shows a prompt and reads a line.
    pub(super) fn ask(&self, prompt: &str) {
        if let Some(prompts) = &self.prompts {
            // It fails only after the end of the terminal, which `next` reports.
            let _ = prompts.send(prompt.to_owned());
        }
    }

    /// Returns the action of the user. One action follows each `ask`.
    pub(super) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::End)
    }

    /// Prints the queued output and restores the terminal. Must not be called while a line is requested.
    pub(super) fn end(mut self) {
        self.prompts = None;
        prompt_printer::remove();
        for thread in self.threads {
            let _ = thread.join();
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
    history: Option<&PathBuf>,
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
fn remember(editor: &mut LineEditor, line: &str, history: Option<&PathBuf>) {
    let is_added = editor.add_history_entry(line).unwrap_or(false);
    if let Some(path) = history.filter(|_| is_added)
        && let Err(error) = editor.append_history(path)
    {
        let name = path.display();
        output::note(&output::dim(&format!("cannot write {name}: {error}; --no-history skips it")));
    }
}
