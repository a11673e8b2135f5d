//! How the process ends, and what it says when it fails.
//!
//! Every failure names what happened and, where there is one, the remedy. Nothing that a peer sends
//! reaches a terminal unescaped.

use std::process::ExitCode;

use antiphon::{CallError, Code, ErrorObject, RawJson};

use crate::output;

/// The exit codes, for scripts to rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Success = 0,
    /// The peer answered with an error.
    PeerError = 1,
    /// The command line or the input makes no sense; clap uses the same code.
    Usage = 2,
    Transport = 3,
    Timeout = 4,
    /// The peer broke the protocol.
    Protocol = 5,
    /// Ctrl-C; of `serve`, a second one while shutting down.
    Interrupted = 130,
}

pub(crate) const HELP: &str = "\
Exit codes:
    0  there is a result, or nothing was asked for
    1  the other side answered with an error
    2  the command line or the input makes no sense
    3  the other side cannot be reached, or the endpoint cannot be listened on
    4  no answer came in time
    5  the other side broke the protocol
  130  Ctrl-C ended `subscribe`, or `serve` before it had shut down";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command has no success to report.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// `error: ...`, or `error -32601: ...` where a peer gave a code.
    code: Option<Code>,
    what: String,
    data: Option<RawJson>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, code: None, what: what.into(), data: None, hint: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Adds the remedy.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Ends with this code instead.
    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Adds the remedy, if it reads like this.
    pub(crate) fn hint_where(self, sign: &str, hint: &str) -> Self {
        if self.what.contains(sign) { self.hint(hint) } else { self }
    }

    /// Says first what it is about.
    pub(crate) fn about(mut self, subject: &str) -> Self {
        self.what = format!("{subject}: {}", self.what);
        self
    }

    /// Says it on stderr, and gives the code to exit with.
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

impl From<ErrorObject> for Failure {
    fn from(error: ErrorObject) -> Self {
        let failure = Self::new(Exit::PeerError, error.message);
        let failure = Self { code: Some(error.code), data: error.data, ..failure };
        match error.code {
            Code::METHOD_NOT_FOUND => {
                failure.hint("the other side has no such method; check its spelling and case")
            }
            _ => failure,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let exit = match error {
            CallError::Rpc(error) => return error.into(),
            CallError::Closed(_) | CallError::Interrupted(_) => {
                return Self::new(Exit::Transport, error.to_string())
                    .hint("it ended before it answered; -v shows what came");
            }
            CallError::TimedOut(_) => Exit::Timeout,
            CallError::Protocol(_) | CallError::Decode { .. } => Exit::Protocol,
            CallError::Encode(_) => Exit::Usage,
            _ => Exit::Transport,
        };
        let failure = Self::new(exit, error.to_string());
        match exit {
            Exit::Protocol => failure.hint("-v shows what came"),
            _ => failure,
        }
    }
}
