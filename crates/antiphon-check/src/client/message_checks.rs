//! Is what the client sends in order?
//!
//! These checks have no scenario of their own: whatever the client sends in the whole run is held
//! against them. The first fault is shown.

use super::codec::ClientWire;
use super::evaluate::ScenarioOutcome;
use super::received::is_text;
use super::record::{MessageFault, ScenarioRecord};
use super::scenario::{CaseInfo, HEADER, HTTP, LINE, WS};
use crate::result::{CaseResult, DialogueLine, FailureKind};
use crate::transcript::RequirementLevel;
use crate::transcript::json::{Json, JsonValue};

/// A check of everything that is sent.
#[derive(Clone, Debug)]
pub(super) struct MessageCheck {
    pub(super) about: CaseInfo,
    subject: RequiredTraffic,
}

/// What must have been sent, or there is nothing to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredTraffic {
    Message,
    /// Two calls under way at once.
    InFlight,
    /// A Response.
    Reply,
}

/// What was sent in the whole run.
#[derive(Debug, Default)]
pub(super) struct Observations {
    faults: Vec<(String, MessageFault)>,
    messages: usize,
    in_flight: usize,
    replies: usize,
}

pub(super) fn all() -> Vec<MessageCheck> {
    [messages(), members(), ids(), replies(), http(), ws(), streams()].concat()
}

fn messages() -> Vec<MessageCheck> {
    vec![
        requests("request-json", "each message is one JSON text in UTF-8")
            .section("RFC 8259 8.1")
            .why("A byte order mark, a comma too many or Latin-1 is a parse error to the server."),
        requests("request-object", "each message is an Object, or an Array of at least one")
            .section("6")
            .why("Everything else is an Invalid Request."),
        requests("members-once", "no member is there twice")
            .should()
            .section("RFC 8259 4")
            .why("Which one counts differs from reader to reader."),
    ]
}

fn members() -> Vec<MessageCheck> {
    vec![
        requests("request-jsonrpc", "`jsonrpc` is \"2.0\"")
            .why("Without it, a server takes the message for JSON-RPC 1.0, or for nothing."),
        requests("request-method", "`method` is a String").why("It names what is called."),
        requests("request-params", "`params` is an Array, an Object, or absent")
            .section("4.2")
            .why("null and single values are refused by strict servers."),
        requests("request-id", "`id` is a String, a Number or null")
            .why("Whatever else it is, no answer can have it."),
        requests("request-members", "there are no members but these four")
            .choice()
            .why("Servers ignore more, or refuse it."),
        requests("reserved-names", "no name that begins with `rpc.` is called, but rpc.discover")
            .choice()
            .section("8")
            .why("These names are for extensions of the protocol; OpenRPC is one that many know."),
    ]
}

fn ids() -> Vec<MessageCheck> {
    vec![
        requests("id-null", "the id of a call is not null")
            .should()
            .why("It is what a server answers with where it could not read the id."),
        requests("id-fraction", "the id of a call has no fraction")
            .should()
            .why("Many fractions cannot be written as they were read."),
        MessageCheck {
            subject: RequiredTraffic::InFlight,
            ..requests("ids-unique", "calls that are under way have ids of their own")
        }
        .why("Only the id says which call an answer belongs to."),
    ]
}

fn replies() -> Vec<MessageCheck> {
    let about = CaseInfo {
        group: "reverse",
        ..CaseInfo::new("reply-shape", "what is answered is a Response")
    };
    vec![
        MessageCheck { about, subject: RequiredTraffic::Reply }
            .section("5")
            .why("The server that asked reads it as strictly as the client reads the server's."),
    ]
}

fn http() -> Vec<MessageCheck> {
    vec![
        wire("http-head", "the head of a request is in order")
            .section("RFC 9112 2")
            .why("Servers refuse what they cannot read, and what could be read in two ways."),
        wire("http-post", "a call is a POST")
            .section("RFC 9110 9.3.3")
            .why("GET is answered by caches, and followed by who only looks."),
        wire("http-host", "a request of HTTP/1.1 names one host")
            .section("RFC 9112 3.2")
            .why("A server must refuse it otherwise."),
        wire("http-length", "a request says where its body ends")
            .section("RFC 9112 6.3")
            .why("Two ends are how requests are smuggled past a proxy."),
        wire("http-content-type", "the type of the body is application/json")
            .should()
            .section("RFC 9110 8.3")
            .why("Servers refuse other types with 415, so that no page posts to them unasked."),
        wire("http-accept", "what is accepted includes application/json")
            .should()
            .section("RFC 9110 12.5.1")
            .why("Servers that look at it refuse with 406."),
    ]
    .into_iter()
    .map(|check| check.over(HTTP))
    .collect()
}

fn ws() -> Vec<MessageCheck> {
    vec![
        wire("ws-handshake", "the opening handshake is in order")
            .section("RFC 6455 4.1")
            .why("Servers refuse it otherwise."),
        wire("ws-masked", "each frame is masked")
            .section("RFC 6455 5.1")
            .why("A server must close the connection otherwise."),
        wire("ws-frames", "frames are in order")
            .section("RFC 6455 5.2")
            .why("A server must close the connection otherwise."),
        wire("ws-text", "messages are sent in text frames")
            .should()
            .section("RFC 6455 5.6")
            .why("JSON is text; not all servers take binary frames."),
    ]
    .into_iter()
    .map(|check| check.over(WS))
    .collect()
}

fn streams() -> Vec<MessageCheck> {
    vec![
        wire("line-ended", "each message ends with a newline")
            .section("RFC 8259 2")
            .should()
            .why("A server that reads lines waits for it.")
            .over(LINE),
        wire("header-block", "each message has a header block with its length in bytes")
            .section("LSP headerPart")
            .why("A length in characters ends within the message.")
            .over(HEADER),
    ]
}

fn requests(name: &'static str, title: &'static str) -> MessageCheck {
    let about = CaseInfo { group: "requests", section: "4", ..CaseInfo::new(name, title) };
    MessageCheck { about, subject: RequiredTraffic::Message }
}

fn wire(name: &'static str, title: &'static str) -> MessageCheck {
    MessageCheck {
        about: CaseInfo { group: "wire", ..CaseInfo::new(name, title) },
        subject: RequiredTraffic::Message,
    }
}

impl MessageCheck {
    fn with(self, about: impl FnOnce(CaseInfo) -> CaseInfo) -> Self {
        Self { about: about(self.about), ..self }
    }

    fn should(self) -> Self {
        self.with(|about| CaseInfo { level: RequirementLevel::Should, ..about })
    }

    fn choice(self) -> Self {
        self.with(|about| CaseInfo { level: RequirementLevel::Choice, ..about })
    }

    fn section(self, section: &'static str) -> Self {
        self.with(|about| CaseInfo { section, ..about })
    }

    fn why(self, why: &'static str) -> Self {
        self.with(|about| CaseInfo { why, ..about })
    }

    fn over(self, wires: &'static [ClientWire]) -> Self {
        self.with(|about| CaseInfo { wires, ..about })
    }

    /// Holds what was sent against it.
    pub(super) fn evaluate(&self, observed: &Observations) -> CaseResult {
        let broken = observed.faults.iter().find(|(_, fault)| fault.check == self.about.name);
        let Some((scenario, fault)) = broken else {
            let finding = observed
                .lack(self.subject)
                .map_or(ScenarioOutcome::Fine, |reason| ScenarioOutcome::NotRun(reason.to_owned()));
            return self.about.outcome(finding);
        };
        let reason = format!("{}, in {scenario}", fault.reason);
        let dialogue =
            fault.shown.iter().map(|shown| DialogueLine::Received(shown.clone())).collect();
        CaseResult {
            dialogue,
            ..self.about.outcome(ScenarioOutcome::Wrong(FailureKind::Wrong, reason))
        }
    }
}

impl Observations {
    /// Adds what was sent in this scenario.
    pub(super) fn add(&mut self, scenario: &str, record: &ScenarioRecord) {
        for fault in &record.faults {
            if !self.faults.iter().any(|(_, known)| known.check == fault.check) {
                self.faults.push((scenario.to_owned(), fault.clone()));
            }
        }
        for reply in &record.replies {
            if let Some(reason) = malformed(reply) {
                let fault =
                    MessageFault { check: "reply-shape", reason, shown: Some(reply.to_string()) };
                self.faults.push((scenario.to_owned(), fault));
            }
        }
        self.messages += record.messages;
        self.in_flight = self.in_flight.max(record.calls_in_flight);
        self.replies += record.replies.len();
    }

    fn lack(&self, subject: RequiredTraffic) -> Option<&'static str> {
        match subject {
            RequiredTraffic::Message if self.messages == 0 => Some("the client sent no message"),
            RequiredTraffic::InFlight if self.in_flight < 2 => {
                Some("the client never had two calls in flight")
            }
            RequiredTraffic::Reply if self.replies == 0 => Some("the client answered nothing"),
            _ => None,
        }
    }
}

/// Section 5.
fn malformed(reply: &Json) -> Option<String> {
    if !reply.member("jsonrpc").is_some_and(|version| is_text(version, "2.0")) {
        return Some("`jsonrpc` is not \"2.0\"".to_owned());
    }
    if reply.member("id").is_none() {
        return Some("`id` is missing".to_owned());
    }
    match (reply.member("result"), reply.member("error")) {
        (Some(_), Some(_)) => Some("it has both a result and an error".to_owned()),
        (_, Some(error)) => {
            let is_error = matches!(error.value, JsonValue::Object(_))
                && error.member("code").is_some_and(Json::is_integer)
                && error.member("message").is_some_and(Json::is_string);
            (!is_error).then(|| format!("at `error`: expected a code and a message, found {error}"))
        }
        _ => None,
    }
}
