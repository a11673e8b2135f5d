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

pub(crate) use self::expand::Text;
pub(crate) use self::line::Statuses;
pub(crate) use self::parse::parse;
pub(crate) use self::pattern::{Bindings, Order, Pattern};

/// One thing that a server must do.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file's name without its ending.
    pub(crate) group: String,
    /// Stable, and unique across all files.
    pub(crate) name: String,
    /// What must happen, in one sentence.
    pub(crate) title: String,
    /// Why it matters.
    pub(crate) why: Option<String>,
    pub(crate) facts: Facts,
    /// What is sent and what must come, in order.
    pub(crate) steps: Vec<Step>,
}

/// What is said of a case, or of all cases of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The section of the specification, or of an RFC.
    pub(crate) section: String,
    /// How binding the specification is here.
    pub(crate) level: Level,
    /// It needs a wire of one of these classes; of any, if there is none.
    pub(crate) only: Vec<Class>,
    /// It cannot be expressed on a wire of one of these classes.
    pub(crate) skip: Vec<Class>,
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
pub(crate) enum Level {
    #[default]
    Must,
    Should,
    /// The specification leaves it open; this is what Antiphon does.
    Choice,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Choice => "choice",
        })
    }
}

/// The dialects that the suite knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
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
pub(crate) enum Wire {
    Http,
    Ws,
    Line,
    Header,
    Values,
}

/// A set of wires that a case can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Both sides can send at any time.
    Duplex,
    /// A raw stream of bytes: TCP, a Unix socket, stdio.
    Stream,
    /// One wire alone.
    One(Wire),
}

impl Class {
    fn has(self, wire: Wire) -> bool {
        match self {
            Self::Duplex => wire != Wire::Http,
            Self::Stream => matches!(wire, Wire::Line | Wire::Header | Wire::Values),
            Self::One(one) => one == wire,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duplex => "duplex",
            Self::Stream => "stream",
            Self::One(Wire::Http) => "http",
            Self::One(Wire::Ws) => "ws",
            Self::One(Wire::Line) => "line",
            Self::One(Wire::Header) => "header",
            Self::One(Wire::Values) => "values",
        })
    }
}

impl Facts {
    /// Whether it can be run over this wire.
    pub(crate) fn fits(&self, wire: Wire) -> bool {
        let on_one_of = |classes: &[Class]| classes.iter().any(|class| class.has(wire));
        (self.only.is_empty() || on_one_of(&self.only)) && !on_one_of(&self.skip)
    }
}

impl Case {
    /// Whether it speaks below messages, so that nobody else can use its connection.
    pub(crate) fn is_raw(&self) -> bool {
        let is_message = |step: &Step| {
            matches!(step, Step::Send(_) | Step::Expect(_) | Step::Unordered(_) | Step::Nothing)
        };
        !self.steps.iter().all(is_message)
    }
}

impl Case {
    /// Whether it calls what takes its time by nature.
    pub(crate) fn is_slow(&self) -> bool {
        let is_slow = |step: &Step| match step {
            Step::Send(text) => {
                ["\"sleep\"", "\"call_me_back\""].iter().any(|name| text.written.contains(name))
            }
            _ => false,
        };
        self.steps.iter().any(is_slow)
    }
}

/// One line of a transcript; lines that belong together are one step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send these bytes as one message, after [`Bindings::fill`].
    Send(Text),
    /// This message comes next, or another one that is as good.
    Expect(Expected),
    /// These come next, in any order.
    Unordered(Vec<Pattern>),
    /// Nothing comes.
    Nothing,
    /// Send these bytes as they are.
    Raw(Text),
    /// Send a WebSocket frame: its first byte, and its payload.
    Frame(u8, Text),
    /// An HTTP answer comes.
    Answer(HttpAnswer),
    /// A WebSocket frame comes.
    ExpectFrame(ExpectedFrame, Or),
    /// The server closes the connection.
    Closed,
    /// Let this time pass.
    Wait(Duration),
    /// Open so many more connections and send this on each.
    Crowd(Crowd),
}

/// What may come, the best first.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) any_of: Vec<Pattern>,
    pub(crate) or: Or,
}

/// What is as good as what is expected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Or {
    pub(crate) silence: bool,
    pub(crate) closed: bool,
}

/// What the head of an HTTP answer must say.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) statuses: Statuses,
    /// These are as good, whatever their headers.
    pub(crate) or_statuses: Vec<Statuses>,
    pub(crate) headers: Vec<(String, HeaderIs)>,
    pub(crate) or: Or,
}

/// What is expected of one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderIs {
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
pub(crate) struct Crowd {
    pub(crate) count: usize,
    pub(crate) text: Text,
    /// They last until the case ends.
    pub(crate) stays: bool,
}
