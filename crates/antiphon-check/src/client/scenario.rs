//! What is a scenario: what the server does, and what a client must make of it?

use std::time::Duration;

use super::codec::ClientWire;
use super::received::{ReceivedCall, ReceivedCalls};
use super::record::ScenarioRecord;
use crate::transcript::RequirementLevel;

/// How long calls are held, for others to join them.
pub(super) const GRACE: Duration = Duration::from_millis(300);
/// How long a client may look at an answer that is none, before the server leaves.
const HESITATION: Duration = Duration::from_millis(300);

/// One thing that clients must be able to cope with.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) about: CaseInfo,
    pub(super) script: ServerScript,
    pub(super) needs: Precondition,
    pub(super) expect: ExpectedExit,
    /// What else must have happened.
    pub(super) proof: Option<RecordCheck>,
}

/// Looks at what was seen; says what is wrong with it.
pub(super) type RecordCheck = fn(&ScenarioRecord) -> Result<(), String>;

/// What is asked of a client, and who says so.
#[derive(Clone, Debug)]
pub(super) struct CaseInfo {
    pub(super) group: &'static str,
    /// Kebab-case, and the same for ever: baselines refer to it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) level: RequirementLevel,
    pub(super) section: &'static str,
    pub(super) why: &'static str,
    pub(super) wires: &'static [ClientWire],
}

/// What the server does.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerScript {
    /// Answers each call so.
    Says(fn(&ReceivedCall) -> String),
    /// Answers each call with what is no answer, and leaves after a while.
    Lies(fn(&ReceivedCall) -> String),
    /// Does this about each message with calls.
    Does(fn(&ReceivedCalls, ClientWire) -> Vec<ServerAction>),
    /// Holds a message with calls this long, for another to join it, and does this about them; over
    /// HTTP at once, since a connection has one call at a time there.
    Holds(Duration, fn(&[ReceivedCalls], ClientWire) -> Vec<ServerAction>),
    /// Leaves whoever comes in, at once.
    Leaves,
    /// Answers the handshake of a WebSocket, whose key is given, so.
    Opens(fn(&str) -> Vec<u8>),
}

/// One thing that the server does.
#[derive(Clone, Debug)]
pub(super) enum ServerAction {
    /// Sends a message, framed as the wire has it.
    Tell(String),
    /// The same, each byte by itself.
    Dribble(String),
    /// Sends the first half of a message, and leaves.
    Half(String),
    /// Sends these bytes as they are.
    Send(Vec<u8>),
    Wait(Duration),
    /// Waits until the client does something about what was sent, or so long. More calls are not
    /// that.
    Listen(Duration),
    /// Says goodbye on a WebSocket, with this code.
    Close(u16),
    Leave,
    /// Leaves, unless there is more to answer: every call that is under way is treated alike.
    LeaveLast,
    /// Owes a message: it is sent once no call waits.
    Owe(String),
    /// Leaves with a reset, where the wire knows one.
    Reset,
}

impl ServerAction {
    /// Does what is no answer, and leaves after a while.
    pub(super) fn lie(act: Self) -> Vec<Self> {
        vec![act, Self::Wait(HESITATION), Self::LeaveLast]
    }
}

/// What a client has to do, or there is nothing to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// Not even a call.
    Nothing,
    Call,
    /// By HTTP/1.1: older clients know no chunks, and no 1xx.
    Http11,
    /// One that is no batch.
    SingleCall,
    /// One message with calls at a time.
    OneInFlight,
    /// Two messages with calls, the second before the first is answered.
    TwoInFlight,
    Batch,
}

/// How the client must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedExit {
    /// With 0: there was a result.
    Result,
    /// With another code: there was none.
    Failure,
    /// With a result where one call was made; later calls may have found nobody.
    ResultOfOne,
    /// As it likes, as long as it ends.
    Either,
}

pub(super) const ALL: &[ClientWire] =
    &[ClientWire::Http, ClientWire::Ws, ClientWire::Line, ClientWire::Header];
pub(super) const HTTP: &[ClientWire] = &[ClientWire::Http];
pub(super) const WS: &[ClientWire] = &[ClientWire::Ws];
pub(super) const LINE: &[ClientWire] = &[ClientWire::Line];
pub(super) const HEADER: &[ClientWire] = &[ClientWire::Header];
/// Where either side can speak at any time.
pub(super) const DUPLEX: &[ClientWire] = &[ClientWire::Ws, ClientWire::Line, ClientWire::Header];

impl CaseInfo {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        let (group, level, section, why) = ("", RequirementLevel::Must, "5", "");
        Self { group, name, title, level, section, why, wires: ALL }
    }
}

impl Scenario {
    /// An answer that is in order, however odd it looks: the client must take it.
    pub(super) fn takes(name: &'static str, title: &'static str) -> Self {
        Self {
            about: CaseInfo::new(name, title),
            script: ServerScript::Says(ReceivedCall::ordinary),
            needs: Precondition::Call,
            expect: ExpectedExit::Result,
            proof: None,
        }
    }

    /// What is no result: the client must not take it for one.
    pub(super) fn refuses(name: &'static str, title: &'static str) -> Self {
        Self { expect: ExpectedExit::Failure, ..Self::takes(name, title) }
    }

    /// What a client may end either way, as long as it ends.
    pub(super) fn survives(name: &'static str, title: &'static str) -> Self {
        Self { expect: ExpectedExit::Either, ..Self::takes(name, title) }
    }

    pub(super) fn should(self) -> Self {
        Self { about: CaseInfo { level: RequirementLevel::Should, ..self.about }, ..self }
    }

    pub(super) fn choice(self) -> Self {
        Self { about: CaseInfo { level: RequirementLevel::Choice, ..self.about }, ..self }
    }

    pub(super) fn section(self, section: &'static str) -> Self {
        Self { about: CaseInfo { section, ..self.about }, ..self }
    }

    pub(super) fn why(self, why: &'static str) -> Self {
        Self { about: CaseInfo { why, ..self.about }, ..self }
    }

    pub(super) fn over(self, wires: &'static [ClientWire]) -> Self {
        Self { about: CaseInfo { wires, ..self.about }, ..self }
    }

    pub(super) fn needs(self, needs: Precondition) -> Self {
        Self { needs, ..self }
    }

    pub(super) fn expect(self, expect: ExpectedExit) -> Self {
        Self { expect, ..self }
    }

    pub(super) fn proof(self, proof: RecordCheck) -> Self {
        Self { proof: Some(proof), ..self }
    }

    pub(super) fn script(self, script: ServerScript) -> Self {
        Self { script, ..self }
    }

    pub(super) fn says(self, answer: fn(&ReceivedCall) -> String) -> Self {
        self.script(ServerScript::Says(answer))
    }

    pub(super) fn lies(self, answer: fn(&ReceivedCall) -> String) -> Self {
        self.script(ServerScript::Lies(answer))
    }

    pub(super) fn does(self, acts: fn(&ReceivedCalls, ClientWire) -> Vec<ServerAction>) -> Self {
        self.script(ServerScript::Does(acts))
    }
}

impl ServerScript {
    /// How long a message is held for others.
    pub(super) fn hold(self, wire: ClientWire) -> Option<Duration> {
        match self {
            Self::Holds(time, _) if wire != ClientWire::Http => Some(time),
            _ => None,
        }
    }

    /// What is done about these messages.
    pub(super) fn acts(self, received: &[ReceivedCalls], wire: ClientWire) -> Vec<ServerAction> {
        let each = |act: &dyn Fn(&ReceivedCalls) -> Vec<ServerAction>| {
            received.iter().flat_map(act).collect()
        };
        match self {
            Self::Says(answer) => {
                each(&|received| vec![ServerAction::Tell(received.answered(answer))])
            }
            Self::Lies(answer) => {
                each(&|received| ServerAction::lie(ServerAction::Tell(received.answered(answer))))
            }
            Self::Does(acts) => each(&|received| acts(received, wire)),
            Self::Holds(_, acts) => acts(received, wire),
            Self::Opens(_) | Self::Leaves => {
                each(&|received| vec![ServerAction::Tell(received.ordinary())])
            }
        }
    }

    /// The answer to the handshake of a WebSocket.
    pub(super) fn opening(self, key: &str) -> Vec<u8> {
        match self {
            Self::Opens(answer) => answer(key),
            _ => super::codec::websocket::switched(key),
        }
    }
}
