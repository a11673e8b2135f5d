//! What do transcripts say?
//!
//! Text becomes cases, and cases are steps: what is sent, and what must come. Nothing here talks to a
//! server; that is the runner's. The format is described in `testdata/wire/README.md`.

mod expand;
pub(crate) mod json;
mod line;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use crate::selection::CaseSummary;

pub(crate) use self::expand::TranscriptText;
pub(crate) use self::line::StatusSet;
pub(crate) use self::parse::parse;
pub(crate) use self::pattern::{Bindings, Order, Pattern};

/// One thing that a server must do.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptCase {
    /// The file's name without its ending.
    pub(crate) group: String,
    /// Stable, and unique across all files.
    pub(crate) name: String,
    /// What must happen, in one sentence.
    pub(crate) title: String,
    /// Why it matters.
    pub(crate) why: Option<String>,
    pub(crate) facts: CaseFacts,
    /// What is sent and what must come, in order.
    pub(crate) steps: Vec<CaseStep>,
}

/// What is said of a case, or of all cases of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFacts {
    /// The section of the specification, or of an RFC.
    pub(crate) section: String,
    /// How binding the specification is here.
    pub(crate) level: RequirementLevel,
    /// It needs a wire of one of these classes; of any, if there is none.
    pub(crate) only: Vec<WireClass>,
    /// It cannot be expressed on a wire of one of these classes.
    pub(crate) skip: Vec<WireClass>,
    /// Methods that the server must have; found from what is sent, where nothing is said.
    pub(crate) needs: Option<Vec<String>>,
    /// Dialects that deviate here on purpose.
    pub(crate) unless: Vec<Profile>,
    /// It is for these dialects alone; for all, if there is none.
    pub(crate) profiles: Vec<Profile>,
    /// The answers to a batch stand in the order of the Requests.
    pub(crate) is_ordered: bool,
    /// It needs a connection that nothing was sent on.
    pub(crate) is_alone: bool,
    /// It is an attack.
    pub(crate) is_hostile: bool,
}

/// How binding the specification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequirementLevel {
    #[default]
    Must,
    Should,
    /// The specification leaves it open; this is what Antiphon does.
    Choice,
}

impl fmt::Display for RequirementLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Choice => "choice",
        })
    }
}

/// The dialects that the suite knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Profile {
    /// JSON-RPC 2.0 as it is written
    #[default]
    Plain,
    /// Language servers: no batches, `initialize` first
    Lsp,
    /// Bitcoin Core: 1.0 beside 2.0
    Bitcoin,
    /// Ethereum nodes: params by position
    Ethereum,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Lsp => "lsp",
            Self::Bitcoin => "bitcoin",
            Self::Ethereum => "ethereum",
        })
    }
}

/// The wires that a case can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireKind {
    Http,
    Ws,
    Line,
    Header,
    Values,
}

/// A set of wires that a case can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireClass {
    /// Both sides can send at any time.
    Duplex,
    /// A raw stream of bytes: TCP, a Unix socket, stdio.
    Stream,
    /// One wire alone.
    One(WireKind),
}

impl WireClass {
    fn has(self, wire: WireKind) -> bool {
        match self {
            Self::Duplex => wire != WireKind::Http,
            Self::Stream => matches!(wire, WireKind::Line | WireKind::Header | WireKind::Values),
            Self::One(one) => one == wire,
        }
    }
}

impl fmt::Display for WireClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duplex => "duplex",
            Self::Stream => "stream",
            Self::One(WireKind::Http) => "http",
            Self::One(WireKind::Ws) => "ws",
            Self::One(WireKind::Line) => "line",
            Self::One(WireKind::Header) => "header",
            Self::One(WireKind::Values) => "values",
        })
    }
}

impl CaseFacts {
    /// Whether it can be run over this wire.
    pub(crate) fn fits(&self, wire: WireKind) -> bool {
        let on_one_of = |classes: &[WireClass]| classes.iter().any(|class| class.has(wire));
        (self.only.is_empty() || on_one_of(&self.only)) && !on_one_of(&self.skip)
    }
}

impl TranscriptCase {
    pub(crate) fn summary(&self) -> CaseSummary<'_> {
        let Self { group, name, title, facts, .. } = self;
        CaseSummary { group, name, level: facts.level, title }
    }

    /// Whether it speaks below messages, so that nobody else can use its connection.
    pub(crate) fn is_raw(&self) -> bool {
        let is_message = |step: &CaseStep| {
            matches!(
                step,
                CaseStep::Send(_)
                    | CaseStep::Expect(_)
                    | CaseStep::Unordered(_)
                    | CaseStep::Nothing
            )
        };
        !self.steps.iter().all(is_message)
    }
}

impl TranscriptCase {
    /// Whether it calls what takes its time by nature.
    pub(crate) fn is_slow(&self) -> bool {
        let is_slow = |step: &CaseStep| match step {
            CaseStep::Send(text) => {
                ["\"sleep\"", "\"call_me_back\""].iter().any(|name| text.written.contains(name))
            }
            _ => false,
        };
        self.steps.iter().any(is_slow)
    }
}

/// One line of a transcript; lines that belong together are one step.
#[derive(Clone, Debug)]
pub(crate) enum CaseStep {
    /// Send these bytes as one message, after [`Bindings::fill`].
    Send(TranscriptText),
    /// This message comes next, or another one that is as good.
    Expect(ExpectedMessage),
    /// These come next, in any order.
    Unordered(Vec<Pattern>),
    /// Nothing comes.
    Nothing,
    /// Send these bytes as they are.
    Raw(TranscriptText),
    /// Send a WebSocket frame: its first byte, and its payload.
    Frame(u8, TranscriptText),
    /// An HTTP answer comes.
    Answer(ExpectedResponse),
    /// A WebSocket frame comes.
    ExpectFrame(ExpectedFrame, Alternative),
    /// The server closes the connection.
    Closed,
    /// Let this time pass.
    Wait(Duration),
    /// Open so many more connections and send this on each.
    Crowd(ExtraConnections),
}

/// What may come, the best first.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedMessage {
    pub(crate) any_of: Vec<Pattern>,
    pub(crate) or: Alternative,
}

/// What is as good as what is expected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alternative {
    pub(crate) silence: bool,
    pub(crate) closed: bool,
}

/// What the head of an HTTP answer must say.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedResponse {
    pub(crate) statuses: StatusSet,
    /// These are as good, whatever their headers.
    pub(crate) or_statuses: Vec<StatusSet>,
    pub(crate) headers: Vec<(String, ExpectedHeader)>,
    pub(crate) or: Alternative,
}

/// What is expected of one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedHeader {
    Any,
    Absent,
    /// This text is in its value, in lower or upper case.
    Holding(String),
}

/// A control frame that must come.
#[derive(Clone, Debug)]
pub(crate) enum ExpectedFrame {
    Pong(Vec<u8>),
    /// With one of these codes; with any, if there is none.
    Close(Vec<u16>),
}

/// Connections beside the one that is judged.
#[derive(Clone, Debug)]
pub(crate) struct ExtraConnections {
    pub(crate) count: usize,
    pub(crate) text: TranscriptText,
    /// They last until the case ends.
    pub(crate) stays: bool,
}
