//! The output of a session: results on stdout, errors and messages from the server on stderr.
//!
//! With `--format json`, results, errors and messages are on stdout, one Object per line.

use std::io::{self, IsTerminal as _};

use antiphon::{ErrorObject, Invocation, Params, RawJson};
use clap::ValueEnum;
use serde::Serialize;

use super::line::Line;
use super::script::LineOrigin;
use crate::answers::{AnswerStatus, Incoming};
use crate::exit::{CommandError, Exit};
use crate::output;

/// The value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SessionFormat {
    /// Results on stdout, one per line; errors and messages from the server on stderr
    Text,
    /// Results, errors and messages from the server on stdout, one JSON Object per line
    Json,
}

/// The output settings of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) format: SessionFormat,
    /// Whether messages from the server are shown.
    pub(super) shows_incoming: bool,
}

/// One line of JSON output.
#[derive(Default, Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
}

impl Report {
    /// Prints the result of a line. Returns false if stdout is closed.
    pub(super) fn result(
        self,
        origin: &LineOrigin,
        line: &Line,
        result: &RawJson,
    ) -> Result<bool, CommandError> {
        match self.format {
            SessionFormat::Json => print(&Entry {
                kind: "result",
                result: Some(result),
                ..Entry::of(origin, Some(line))
            }),
            SessionFormat::Text if !line.prints() => Ok(true),
            SessionFormat::Text if io::stdout().is_terminal() => {
                output::result(result).map(|()| true)
            }
            SessionFormat::Text => output::item(result),
        }
    }

    /// Prints the error of a line, and returns its exit code.
    pub(super) fn failure(
        self,
        origin: &LineOrigin,
        line: Option<&Line>,
        failure: CommandError,
    ) -> Result<Exit, CommandError> {
        if self.format == SessionFormat::Text {
            return Ok(origin.name_in(failure).report());
        }
        let entry = Entry::of(origin, line);
        match failure.peer_error() {
            Some(error) => print(&Entry { kind: "error", error: Some(&error), ..entry })?,
            None => print(&Entry {
                kind: "failure",
                message: Some(failure.what()),
                hint: failure.remedy(),
                exit: Some(failure.exit as u8),
                ..entry
            })?,
        };
        Ok(failure.exit)
    }

    /// Shows a message from the server.
    pub(super) fn incoming(self, (message, status): Incoming<'_>) {
        let answer = match status {
            AnswerStatus::Answered(outcome) => Some(outcome),
            _ => None,
        };
        match self.format {
            _ if !self.shows_incoming && !matches!(status, AnswerStatus::Awaited) => {}
            SessionFormat::Text => {
                let text = output::dim(&text((message, status)));
                match status {
                    // Never dropped: the user must see it, and only a few calls wait at a time.
                    AnswerStatus::Awaited => output::note(&text),
                    _ => output::message(&text),
                }
            }
            SessionFormat::Json => {
                let entry = Entry {
                    kind: match status {
                        AnswerStatus::NotNeeded => "notification",
                        _ => "call",
                    },
                    method: Some(message.method.as_str()),
                    params: params(message),
                    result: answer.and_then(|answer| answer.as_ref().ok()),
                    error: answer.and_then(|answer| answer.as_ref().err()),
                    ..Entry::default()
                };
                // If stdout is closed, the next result reports it.
                let _ = entry.encode().and_then(|json| output::message_item(&json));
            }
        }
    }
}

impl<'a> Entry<'a> {
    fn of(origin: &LineOrigin, line: Option<&'a Line>) -> Self {
        Self {
            line: Some(origin.number),
            method: line.and_then(Line::method),
            variable: line.and_then(|line| line.variable.as_deref()),
            ..Self::default()
        }
    }

    fn encode(&self) -> Result<RawJson, CommandError> {
        RawJson::encode(self).map_err(|fault| CommandError::new(Exit::Protocol, fault.to_string()))
    }
}

/// Prints the outcome of a line.
fn print(entry: &Entry<'_>) -> Result<bool, CommandError> {
    output::item(&entry.encode()?)
}

fn params(message: &Invocation) -> Option<&RawJson> {
    message.params.as_ref().map(Params::as_json)
}

/// Formats `server: METHOD PARAMS -> ANSWER`.
fn text((message, status): Incoming<'_>) -> String {
    let short = |text: &str| output::excerpt(&output::visible(text));
    let json = |json: &RawJson| short(&output::on_one_line(json.as_str()));
    let params = params(message).map(|params| format!(" {}", json(params))).unwrap_or_default();
    let answer = match status {
        AnswerStatus::NotNeeded => String::new(),
        AnswerStatus::Awaited => " waits for `reply JSON` or `reply !CODE MESSAGE`".to_owned(),
        AnswerStatus::Answered(Ok(result)) => format!(" -> {}", json(result)),
        AnswerStatus::Answered(Err(error)) => {
            format!(" -> error {}: {}", error.code, short(&error.message))
        }
    };
    format!("server: {}{params}{answer}", short(message.method.as_str()))
}
