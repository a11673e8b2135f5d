//! Scenarios: the script of the server, and the required behaviour of the client.

use std::time::Duration;

use super::codec::ClientWire;
use super::received::{ReceivedCall, ReceivedCalls};
use super::record::ScenarioRecord;
use crate::transcript::RequirementLevel;

/// The time that a call is held, for another to join it.
pub(super) const GRACE: Duration = Duration::from_millis(300);
/// The delay between an invalid response and the close of the connection.
const CLOSE_DELAY: Duration = Duration::from_millis(300);

/// One scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) about: CaseInfo,
    pub(super) script: ServerScript,
    pub(super) needs: Precondition,
    pub(super) expect: ExpectedExit,
    /// A further check of the record.
    pub(super) record_check: Option<RecordCheck>,
}

/// A check of the record. The error describes the fault.
pub(super) type RecordCheck = fn(&ScenarioRecord) -> Result<(), String>;

/// The description of a case.
#[derive(Clone, Debug)]
pub(super) struct CaseInfo {
    pub(super) group: &'static str,
    /// Kebab-case, and stable: baselines refer to it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) level: RequirementLevel,
    pub(super) section: &'static str,
    pub(super) why: &'static str,
    pub(super) wires: &'static [ClientWire],
}

/// The script of the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerScript {
    /// Sends this response to each call.
    Respond(fn(&ReceivedCall) -> String),
    /// Sends this invalid response to each call, and closes the connection after a delay.
    RespondWrongly(fn(&ReceivedCall) -> String),
    /// Performs these actions for each message with calls.
    Act(fn(&ReceivedCalls, ClientWire) -> Vec<ServerAction>),
    /// Holds a message with calls for this time, for another to join it, and then performs these
    /// actions. Over HTTP it does not wait: a connection has one call at a time.
    HoldThenAct(Duration, fn(&[ReceivedCalls], ClientWire) -> Vec<ServerAction>),
    /// Closes every connection at once.
    CloseAtOnce,
    /// Sends this response to a WebSocket handshake with the given key.
    Handshake(fn(&str) -> Vec<u8>),
}

/// One action of the server.
#[derive(Clone, Debug)]
pub(super) enum ServerAction {
    /// Sends a correctly framed message.
    Message(String),
    /// Sends a message byte by byte.
    ByteByByte(String),
    /// Sends the first half of a message, and closes the connection.
    Truncated(String),
    /// Sends these bytes as they are.
    Send(Vec<u8>),
    Wait(Duration),
    /// Waits for a reaction of the client, up to this time. Further calls are not a reaction.
    Listen(Duration),
    /// Sends a WebSocket close frame with this code.
    CloseFrame(u16),
    Close,
    /// Closes the connection, unless another call waits: all calls in flight get the same treatment.
    CloseWhenIdle,
    /// Sends a message once no call waits.
    Deferred(String),
    /// Resets the connection, if the wire can.
    Reset,
}

impl ServerAction {
    /// Performs the action, and closes the connection after a delay.
    pub(super) fn then_close(act: Self) -> Vec<Self> {
        vec![act, Self::Wait(CLOSE_DELAY), Self::CloseWhenIdle]
    }
}

/// The behaviour of the client that a scenario needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// None, not even a call.
    Nothing,
    Call,
    /// HTTP/1.1: older clients know neither chunks nor 1xx.
    Http11,
    /// A call outside a batch.
    SingleCall,
    /// One message with calls at a time.
    OneInFlight,
    /// Two messages with calls, the second before the response to the first.
    TwoInFlight,
    Batch,
}

/// The required exit of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedExit {
    /// With 0: it got a result.
    Result,
    /// With another code: it got none.
    Failure,
    /// With 0 if it made one call. Later calls may have failed to connect.
    ResultOfOne,
    /// With any code.
    Either,
}

pub(super) const ALL: &[ClientWire] =
    &[ClientWire::Http, ClientWire::Ws, ClientWire::Line, ClientWire::Header];
pub(super) const HTTP: &[ClientWire] = &[ClientWire::Http];
pub(super) const WS: &[ClientWire] = &[ClientWire::Ws];
pub(super) const LINE: &[ClientWire] = &[ClientWire::Line];
pub(super) const HEADER: &[ClientWire] = &[ClientWire::Header];
/// The wires where either side can send at any time.
pub(super) const DUPLEX: &[ClientWire] = &[ClientWire::Ws, ClientWire::Line, ClientWire::Header];

impl CaseInfo {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        let (group, level, section, why) = ("", RequirementLevel::Must, "5", "");
        Self { group, name, title, level, section, why, wires: ALL }
    }
}

impl Scenario {
    /// A valid response: the client must accept it.
    pub(super) fn accepts(name: &'static str, title: &'static str) -> Self {
        Self {
            about: CaseInfo::new(name, title),
            script: ServerScript::Respond(ReceivedCall::ordinary),
            needs: Precondition::Call,
            expect: ExpectedExit::Result,
            record_check: None,
        }
    }

    /// Not a result: the client must report a failure.
    pub(super) fn rejects(name: &'static str, title: &'static str) -> Self {
        Self { expect: ExpectedExit::Failure, ..Self::accepts(name, title) }
    }

    /// The client may exit with any code, but it must exit.
    pub(super) fn survives(name: &'static str, title: &'static str) -> Self {
        Self { expect: ExpectedExit::Either, ..Self::accepts(name, title) }
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

    pub(super) fn record_check(self, check: RecordCheck) -> Self {
        Self { record_check: Some(check), ..self }
    }

    pub(super) fn script(self, script: ServerScript) -> Self {
        Self { script, ..self }
    }

    pub(super) fn responds(self, answer: fn(&ReceivedCall) -> String) -> Self {
        self.script(ServerScript::Respond(answer))
    }

    pub(super) fn responds_wrongly(self, answer: fn(&ReceivedCall) -> String) -> Self {
        self.script(ServerScript::RespondWrongly(answer))
    }

    pub(super) fn acts(self, acts: fn(&ReceivedCalls, ClientWire) -> Vec<ServerAction>) -> Self {
        self.script(ServerScript::Act(acts))
    }
}

impl ServerScript {
    /// Returns the time that a message is held.
    pub(super) fn hold(self, wire: ClientWire) -> Option<Duration> {
        match self {
            Self::HoldThenAct(time, _) if wire != ClientWire::Http => Some(time),
            _ => None,
        }
    }

    /// Returns the actions for these messages.
    pub(super) fn acts(self, received: &[ReceivedCalls], wire: ClientWire) -> Vec<ServerAction> {
        let each = |act: &dyn Fn(&ReceivedCalls) -> Vec<ServerAction>| {
            received.iter().flat_map(act).collect()
        };
        match self {
            Self::Respond(answer) => {
                each(&|received| vec![ServerAction::Message(received.respond(answer))])
            }
            Self::RespondWrongly(answer) => each(&|received| {
                ServerAction::then_close(ServerAction::Message(received.respond(answer)))
            }),
            Self::Act(acts) => each(&|received| acts(received, wire)),
            Self::HoldThenAct(_, acts) => acts(received, wire),
            Self::Handshake(_) | Self::CloseAtOnce => {
                each(&|received| vec![ServerAction::Message(received.ordinary())])
            }
        }
    }

    /// Returns the response to a WebSocket handshake.
    pub(super) fn opening(self, key: &str) -> Vec<u8> {
        match self {
            Self::Handshake(answer) => answer(key),
            _ => super::codec::websocket::switched(key),
        }
    }
}
