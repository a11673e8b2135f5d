//! Exit codes and error messages.
//!
//! An error message names the cause and, if there is one, the remedy. Text from a peer is escaped
//! before it reaches a terminal.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use antiphon::{CallError, Cause, Code, ErrorChain, ErrorObject, RawJson};

use crate::output;

/// The exit codes. Scripts rely on them, so they do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Success = 0,
    /// The peer returned an error.
    PeerError = 1,
    /// The command line or the input is invalid. clap uses the same code.
    Usage = 2,
    Transport = 3,
    Timeout = 4,
    /// The peer violated the protocol.
    Protocol = 5,
    /// Ctrl-C. `serve` exits with this code only on a second signal.
    Interrupted = 130,
}

pub(crate) const HELP: &str = "\
Exit codes:
    0  success
    1  the peer returned a JSON-RPC error
    2  invalid command line or input
    3  cannot connect, cannot listen, or the connection was lost
    4  timeout
    5  the peer violated the protocol
  130  interrupted by Ctrl-C (`serve`: by a second Ctrl-C)";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The error of a command, as it is printed.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: Exit,
    /// Printed as `error -32601: ...` for an error of the peer. Without a code: `error: ...`.
    code: Option<Code>,
    what: String,
    data: Option<RawJson>,
    hint: Option<String>,
}

impl CommandError {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, code: None, what: what.into(), data: None, hint: None }
    }

    /// An error with all its causes.
    pub(crate) fn caused(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(exit, ErrorChain(error).to_string())
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A file that cannot be read.
    pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Self {
        Self::usage(format!("cannot read {}: {error}", path.display()))
    }

    /// Adds the remedy.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces the exit code.
    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Adds the remedy if the message contains `sign`.
    pub(crate) fn hint_where(self, sign: &str, hint: &str) -> Self {
        if self.what.contains(sign) { self.hint(hint) } else { self }
    }

    /// Prefixes the message with its subject.
    pub(crate) fn about(mut self, subject: &str) -> Self {
        self.what = format!("{subject}: {}", self.what);
        self
    }

    /// Returns the message.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Returns the remedy.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the error that the peer responded with.
    pub(crate) fn peer_error(&self) -> Option<ErrorObject> {
        let error = ErrorObject::new(self.code?.0, self.what.clone());
        Some(match &self.data {
            Some(data) => error.with_data(data),
            None => error,
        })
    }

    /// Prints the error on stderr and returns the exit code.
    pub(crate) fn report(self) -> Exit {
        let code = self.code.map(|code| format!(" {code}")).unwrap_or_default();
        output::note(&format!("{}{code}: {}", output::red("error"), output::visible(&self.what)));
        if let Some(data) = &self.data {
            output::note(&format!("data: {}", output::for_stderr(data)));
        }
        if let Some(hint) = &self.hint {
            output::note(&format!("hint: {}", output::visible(hint)));
        }
        self.exit
    }
}

impl From<ErrorObject> for CommandError {
    fn from(error: ErrorObject) -> Self {
        let failure = Self::new(Exit::PeerError, error.message);
        let failure = Self { code: Some(error.code), data: error.data, ..failure };
        match error.code {
            Code::METHOD_NOT_FOUND => {
                failure.hint("the peer has no such method; check its spelling and case")
            }
            _ => failure,
        }
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        let exit = match error {
            CallError::Rpc(error) => return error.into(),
            CallError::Closed(_) | CallError::Interrupted(_) => {
                return Self::caused(Exit::Transport, &error)
                    .hint("check the log of the server; -v shows the messages");
            }
            CallError::Unreachable { ref source, .. } if is_refused(source) => {
                return Self::caused(Exit::Transport, &error).hint("is the server running there?");
            }
            CallError::TimedOut(_) | CallError::SendTimedOut(_) => Exit::Timeout,
            CallError::Unreachable { ref source, .. } if is_late(source) => Exit::Timeout,
            CallError::Protocol(_) | CallError::Decode { .. } => Exit::Protocol,
            CallError::Encode(_) => Exit::Usage,
            _ => Exit::Transport,
        };
        let failure = Self::caused(exit, &error);
        match exit {
            Exit::Protocol => failure.hint("-v shows the messages").hint_where(
                "`jsonrpc` is missing",
                "a peer of JSON-RPC 1.0 needs --dialect v1, a Bitcoin node --dialect bitcoin",
            ),
            _ => failure
                .hint_where("401 Unauthorized", "--user, --jwt-secret or -H sends credentials"),
        }
    }
}

/// Whether nothing listens at the address.
fn is_refused(cause: &Cause) -> bool {
    kind(cause) == Some(io::ErrorKind::ConnectionRefused)
}

/// Whether there was no connection in time.
fn is_late(cause: &Cause) -> bool {
    kind(cause) == Some(io::ErrorKind::TimedOut)
}

fn kind(cause: &Cause) -> Option<io::ErrorKind> {
    cause.downcast_ref::<io::Error>().map(io::Error::kind)
}
