//! The lines of a session without a prompt: from stdin, a file or the command line.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use tokio::sync::mpsc::{Receiver, channel};

use super::executor::{self, LineOutcome};
use super::line::{Line, Step};
use super::report::Report;
use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::open_connection::OpenConnection;

/// The origin of a line.
#[derive(Clone, Debug)]
pub(super) struct LineOrigin {
    /// The number of the line, from 1.
    pub(super) number: usize,
    /// The name in errors, such as `line 3` or `calls.txt:3`. `None` at the prompt.
    pub(super) name: Option<String>,
}

impl LineOrigin {
    /// Adds the origin to an error.
    pub(super) fn name_in(&self, failure: CommandError) -> CommandError {
        match &self.name {
            Some(name) => failure.about(name),
            None => failure,
        }
    }
}

/// The lines to run.
#[derive(Debug)]
pub(super) enum Script {
    Given(VecDeque<(LineOrigin, String)>),
    /// The lines of stdin as they arrive, and the number of the last one.
    Stdin(Receiver<io::Result<String>>, usize),
}

impl Script {
    /// The lines of the command line.
    pub(super) fn of_lines(lines: &[String]) -> Self {
        let origin = |number| LineOrigin { number, name: Some(format!("line {number}")) };
        Self::Given((1..).map(origin).zip(lines.iter().cloned()).collect())
    }

    /// Creates a script of one line.
    pub(super) fn of_line(number: usize, text: &str) -> Self {
        let origin = LineOrigin { number, name: Some(format!("line {number}")) };
        Self::Given(VecDeque::from([(origin, text.to_owned())]))
    }

    pub(super) fn of_file(path: &Path) -> Result<Self, CommandError> {
        let file = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CommandError::cannot_read(path, &error))?;
        let origin = |number| LineOrigin { number, name: Some(format!("{file}:{number}")) };
        Ok(Self::Given((1..).map(origin).zip(text.lines().map(str::to_owned)).collect()))
    }

    pub(super) fn of_stdin() -> Self {
        /// The lines that are read ahead.
        const AHEAD: usize = 16;
        let (sender, lines) = channel(AHEAD);
        std::thread::spawn(move || {
            for line in io::stdin().lines() {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self::Stdin(lines, 0)
    }

    /// Checks the syntax of all lines that are already available, before any of them runs.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let Self::Given(lines) = self else { return Ok(()) };
        lines.iter().try_for_each(|(origin, text)| {
            Line::parse(text).map(drop).map_err(|fault| origin.name_in(fault))
        })
    }

    async fn next(&mut self) -> Result<Option<(LineOrigin, String)>, CommandError> {
        match self {
            Self::Given(lines) => Ok(lines.pop_front()),
            Self::Stdin(lines, number) => {
                *number += 1;
                let origin = LineOrigin { number: *number, name: Some(format!("line {number}")) };
                let text = lines.recv().await.transpose().map_err(|error| {
                    CommandError::usage(format!("cannot read line {number} of stdin: {error}"))
                })?;
                Ok(text.map(|text| (origin, text)))
            }
        }
    }

    /// Runs the lines. An error ends the script, unless `keeps_going`. Returns the highest exit code.
    pub(super) async fn run(
        mut self,
        connection: &mut OpenConnection,
        connect: &ConnectArgs,
        report: Report,
        keeps_going: bool,
    ) -> Result<Exit, CommandError> {
        let mut worst = Exit::Success;
        while let Some((origin, text)) = self.next().await? {
            match run_line(connection, connect, report, &origin, &text).await? {
                LineEnd::Next => {}
                LineEnd::Last => break,
                LineEnd::Failed(exit) => {
                    worst = worst.max(exit);
                    // No later line can succeed on a lost connection.
                    if !keeps_going || exit == Exit::Transport {
                        break;
                    }
                }
            }
        }
        Ok(worst)
    }

    /// Runs the lines without output. The first error ends the script. It names the number of the line and the method,
    /// but not the line, which may contain a password.
    pub(super) async fn run_silently(
        mut self,
        connection: &mut OpenConnection,
    ) -> Result<(), CommandError> {
        while let Some((origin, text)) = self.next().await? {
            let line = match Line::parse(&text) {
                Ok(None) => continue,
                Ok(Some(line)) => line,
                Err(fault) => return Err(origin.name_in(fault)),
            };
            let ran = executor::run(connection, &line, None).await;
            let outcome = ran.map_err(|failure| {
                origin.name_in(match line.method() {
                    Some(method) => failure.about(&format!("`{method}`")),
                    None => failure,
                })
            })?;
            if let LineOutcome::Exit = outcome {
                break;
            }
        }
        Ok(())
    }
}

/// The effect of a line on the session.
pub(super) enum LineEnd {
    Next,
    /// The session ends.
    Last,
    Failed(Exit),
}

/// Runs a line within `--timeout`, and prints its result or error.
pub(super) async fn run_line(
    connection: &mut OpenConnection,
    connect: &ConnectArgs,
    report: Report,
    origin: &LineOrigin,
    text: &str,
) -> Result<LineEnd, CommandError> {
    let failed = |line, failure| report.failure(origin, line, failure).map(LineEnd::Failed);
    let line = match Line::parse(text) {
        Ok(None) => return Ok(LineEnd::Next),
        Ok(Some(line)) => line,
        Err(fault) => return failed(None, fault),
    };
    let ran = executor::run(connection, &line, connect.limit());
    let ran = match line.step {
        // `wait` has its own time limit.
        Step::Wait(_) => ran.await,
        _ => connect.in_time(ran).await.and_then(|ran| ran),
    };
    match ran {
        Ok(LineOutcome::Exit) => Ok(LineEnd::Last),
        Ok(LineOutcome::Done) => Ok(LineEnd::Next),
        Ok(LineOutcome::Result(result)) => match report.result(origin, &line, &result)? {
            true => Ok(LineEnd::Next),
            // Nobody reads stdout anymore, so no more results are needed.
            false => Ok(LineEnd::Last),
        },
        Err(failure) => failed(Some(&line), failure),
    }
}
