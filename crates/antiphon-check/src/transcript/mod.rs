//! Transcripts: parses text to cases, and cases are steps that send and expect messages.
//!
//! Nothing here performs I/O. `testdata/wire/README.md` describes the format.

pub(crate) mod json;
mod line;
mod mcp_rule;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;
mod transcript_text;

use std::fmt;
use std::time::Duration;

use crate::selection::CaseSummary;

pub(crate) use self::line::StatusSet;
pub(crate) use self::mcp_rule::McpRule;
pub(crate) use self::parse::parse;
pub(crate) use self::pattern::{Bindings, Order, Pattern};
pub(crate) use self::transcript_text::TranscriptText;

/// One case: one required behaviour of a server.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptCase {
    /// The name of the file without the extension.
    pub(crate) group: String,
    /// Stable, and unique across all files.
    pub(crate) name: String,
    /// The required behaviour, in one sentence.
    pub(crate) title: String,
    /// The reason for the requirement.
    pub(crate) why: Option<String>,
    pub(crate) facts: CaseFacts,
    /// The steps, in order.
    pub(crate) steps: Vec<CaseStep>,
}

/// The `@` facts of a case, or of all cases of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFacts {
    /// The section of the specification, or of an RFC.
    pub(crate) section: String,
    /// The requirement level.
    pub(crate) level: RequirementLevel,
    /// The case runs only over these wires; over all, if the list is empty.
    pub(crate) only: Vec<WireClass>,
    /// The case cannot be expressed over these wires.
    pub(crate) skip: Vec<WireClass>,
    /// Methods that the server must have; `None` to derive them from the messages.
    pub(crate) needs: Option<Vec<String>>,
    /// Dialects that deviate here on purpose, and skip the case.
    pub(crate) unless: Vec<Profile>,
    /// The case runs only for these dialects; for all, if the list is empty.
    pub(crate) profiles: Vec<Profile>,
    /// The replies to a batch must be in the order of the Requests.
    pub(crate) is_ordered: bool,
    /// The case needs a new connection.
    pub(crate) is_alone: bool,
    /// The case is an attack.
    pub(crate) is_hostile: bool,
    /// The case does the handshake of the dialect itself.
    pub(crate) is_without_handshake: bool,
    /// The generation of MCP that the case is about; any, if there is none.
    pub(crate) era: Option<McpEra>,
    /// The case sends nothing: it judges every message of the run by this rule.
    pub(crate) watch: Option<McpRule>,
}

/// The requirement level of a case, after RFC 2119.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequirementLevel {
    /// The specification requires it.
    #[default]
    Must,
    /// The specification recommends it.
    Should,
    /// The specification allows several behaviours. The case shows that of Antiphon.
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

/// A dialect of JSON-RPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Profile {
    /// JSON-RPC 2.0, as the specification defines it
    #[default]
    Plain,
    /// Language servers: no batches, `initialize` first
    Lsp,
    /// Bitcoin Core: JSON-RPC 1.0 and 2.0
    Bitcoin,
    /// Ethereum nodes: params by position
    Ethereum,
    /// MCP servers, from 2024-11-05 to 2026-07-28
    Mcp,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Lsp => "lsp",
            Self::Bitcoin => "bitcoin",
            Self::Ethereum => "ethereum",
            Self::Mcp => "mcp",
        })
    }
}

/// The two generations of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpEra {
    /// Up to 2025-11-25: a session that begins with `initialize`.
    Legacy,
    /// Since 2026-07-28: every request carries its version and capabilities.
    Modern,
}

/// The wires that a case can distinguish.
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
    /// One wire.
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
            Self::Duplex => "duplex transports (all except HTTP)",
            Self::Stream => "raw streams (tcp, tls, unix, exec)",
            Self::One(WireKind::Http) => "HTTP",
            Self::One(WireKind::Ws) => "WebSocket",
            Self::One(WireKind::Line) => "the framing `line`",
            Self::One(WireKind::Header) => "the framing `header`",
            Self::One(WireKind::Values) => "the framing `values`",
        })
    }
}

impl CaseFacts {
    /// Reports whether the case can be run over this wire.
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

    /// Reports whether the case works below messages, so that no other case can use its connection.
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

    /// Returns the texts that the case sends.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &TranscriptText> {
        self.steps.iter().filter_map(|step| match step {
            CaseStep::Send(text) | CaseStep::Raw(text) | CaseStep::Frame(_, text) => Some(text),
            _ => None,
        })
    }

    /// Reports whether the case calls a slow method.
    pub(crate) fn is_slow(&self) -> bool {
        const SLOW: [&str; 3] = ["\"sleep\"", "\"call_me_back\"", "\"<tool>\""];
        let is_slow = |step: &CaseStep| match step {
            CaseStep::Send(text) => SLOW.iter().any(|name| text.written.contains(name)),
            _ => false,
        };
        self.steps.iter().any(is_slow)
    }
}

/// One step of a case: a line of the transcript, or several lines that belong together.
#[derive(Clone, Debug)]
pub(crate) enum CaseStep {
    /// Send these bytes as one message, after [`Bindings::fill`].
    Send(TranscriptText),
    /// Expect this message next, or one of its alternatives.
    Expect(ExpectedMessage),
    /// Expect these messages next, in any order.
    Unordered(Vec<Pattern>),
    /// Expect nothing.
    Nothing,
    /// Send these bytes as they are.
    Raw(TranscriptText),
    /// Send a WebSocket frame: its first byte, and its payload.
    Frame(u8, TranscriptText),
    /// Expect an HTTP response.
    Response(ExpectedResponse),
    /// Expect a WebSocket frame.
    ExpectFrame(ExpectedFrame, Alternative),
    /// Expect the server to close the connection.
    Closed,
    /// Set a header of the next POST, or leave the header out.
    Header(String, Option<TranscriptText>),
    /// Wait.
    Wait(Duration),
    /// Open more connections, and send a text on each.
    Connect(ExtraConnections),
}

/// The expected messages, the best first.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedMessage {
    pub(crate) any_of: Vec<Pattern>,
    pub(crate) or: Alternative,
}

/// The alternatives to an expected message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alternative {
    pub(crate) silence: bool,
    pub(crate) closed: bool,
}

/// The expected head of an HTTP response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedResponse {
    pub(crate) statuses: StatusSet,
    /// Alternative statuses, with any headers.
    pub(crate) or_statuses: Vec<StatusSet>,
    pub(crate) headers: Vec<(String, ExpectedHeader)>,
    pub(crate) or: Alternative,
}

/// The expectation about one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedHeader {
    Any,
    Absent,
    /// The value contains this text, in any case.
    Holding(String),
}

/// An expected control frame.
#[derive(Clone, Debug)]
pub(crate) enum ExpectedFrame {
    Pong(Vec<u8>),
    /// With one of these codes; with any, if the list is empty.
    Close(Vec<u16>),
}

/// Connections beside the one under test.
#[derive(Clone, Debug)]
pub(crate) struct ExtraConnections {
    pub(crate) count: usize,
    pub(crate) text: TranscriptText,
    /// They stay open until the case ends.
    pub(crate) stays: bool,
}
