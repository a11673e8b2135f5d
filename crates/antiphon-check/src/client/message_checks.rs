//! Checks of every message that the client sends.
//!
//! They have no scenario of their own: every message of the whole run must pass them. The report shows
//! the first fault.

use super::codec::ClientWire;
use super::evaluate::ScenarioOutcome;
use super::received::is_text;
use super::record::{MessageFault, ScenarioRecord};
use super::scenario::{CaseInfo, HEADER, HTTP, LINE, WS};
use crate::result::{CaseResult, DialogueLine, FailureKind};
use crate::transcript::RequirementLevel;
use crate::transcript::json::{Json, JsonValue};

/// A check of every message.
#[derive(Clone, Debug)]
pub(super) struct MessageCheck {
    pub(super) about: CaseInfo,
    requires: RequiredTraffic,
}

/// The traffic that a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredTraffic {
    Message,
    /// Two calls in flight at once.
    InFlight,
    /// A Response.
    Reply,
}

/// The traffic of the whole run.
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
            .why("A byte order mark, an extra comma or Latin-1 text is a parse error for the server."),
        requests("request-object", "each message is an Object, or an Array with at least one Object")
            .section("6")
            .why("Anything else is an Invalid Request."),
        requests("members-once", "no Object has a duplicate member")
            .should()
            .section("RFC 8259 4")
            .why("Parsers differ in which of the two they use."),
    ]
}

fn members() -> Vec<MessageCheck> {
    vec![
        requests("request-jsonrpc", "`jsonrpc` is \"2.0\"")
            .why("Without it, a server treats the message as JSON-RPC 1.0, or rejects it."),
        requests("request-method", "`method` is a String")
            .why("It is the name of the called method."),
        requests("request-params", "`params` is an Array, an Object, or absent")
            .section("4.2")
            .why("Strict servers reject null and single values."),
        requests("request-id", "`id` is a String, a Number or null")
            .why("A Response cannot repeat any other type."),
        requests("request-members", "a Request has only these four members")
            .choice()
            .why("Servers ignore other members, or reject them."),
        requests("reserved-names", "the client calls no `rpc.` method except rpc.discover")
            .choice()
            .section("8")
            .why("These names are reserved for extensions of the protocol, such as OpenRPC."),
    ]
}

fn ids() -> Vec<MessageCheck> {
    vec![
        requests("id-null", "the id of a call is not null")
            .should()
            .why("A server uses null in its Response if it could not read the id."),
        requests("id-fraction", "the id of a call has no fraction")
            .should()
            .why("Many fractions change when a server reads and writes them."),
        MessageCheck {
            requires: RequiredTraffic::InFlight,
            ..requests("ids-unique", "calls in flight have different ids")
        }
        .why("Only the id connects a response with its call."),
    ]
}

fn replies() -> Vec<MessageCheck> {
    let about = CaseInfo {
        group: "reverse",
        ..CaseInfo::new("reply-shape", "a reply of the client is a valid Response")
    };
    vec![
        MessageCheck { about, requires: RequiredTraffic::Reply }
            .section("5")
            .why("The server reads it as strictly as the client reads the server's."),
    ]
}

fn http() -> Vec<MessageCheck> {
    vec![
        wire("http-head", "the head of a request is valid")
            .section("RFC 9112 2")
            .why("Servers reject a head that is malformed or ambiguous."),
        wire("http-post", "a call is a POST")
            .section("RFC 9110 9.3.3")
            .why("Caches reply to GET, and crawlers and prefetchers repeat it."),
        wire("http-host", "an HTTP/1.1 request has exactly one Host header")
            .section("RFC 9112 3.2")
            .why("Otherwise a server must reject it."),
        wire("http-length", "a request has one unambiguous body length")
            .section("RFC 9112 6.3")
            .why("Two different lengths allow request smuggling past a proxy."),
        wire("http-content-type", "the Content-Type is application/json")
            .should()
            .section("RFC 9110 8.3")
            .why(
                "Servers reject other types with 415, as a protection against cross-site requests.",
            ),
        wire("http-accept", "the Accept header includes application/json")
            .should()
            .section("RFC 9110 12.5.1")
            .why("Servers that check it reject the request with 406."),
    ]
    .into_iter()
    .map(|check| check.over(HTTP))
    .collect()
}

fn ws() -> Vec<MessageCheck> {
    vec![
        wire("ws-handshake", "the opening handshake is valid")
            .section("RFC 6455 4.1")
            .why("Otherwise servers reject it."),
        wire("ws-masked", "each frame is masked")
            .section("RFC 6455 5.1")
            .why("Otherwise a server must close the connection."),
        wire("ws-frames", "frames are valid")
            .section("RFC 6455 5.2")
            .why("Otherwise a server must close the connection."),
        wire("ws-text", "messages are sent in text frames")
            .should()
            .section("RFC 6455 5.6")
            .why("JSON is text, and not all servers accept binary frames."),
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
            .why("A server that reads lines waits for the newline.")
            .over(LINE),
        wire("header-block", "each message has a header block with its length in bytes")
            .section("LSP headerPart")
            .why("A length in characters cuts the message off.")
            .over(HEADER),
    ]
}

fn requests(name: &'static str, title: &'static str) -> MessageCheck {
    let about = CaseInfo { group: "requests", section: "4", ..CaseInfo::new(name, title) };
    MessageCheck { about, requires: RequiredTraffic::Message }
}

fn wire(name: &'static str, title: &'static str) -> MessageCheck {
    MessageCheck {
        about: CaseInfo { group: "wire", ..CaseInfo::new(name, title) },
        requires: RequiredTraffic::Message,
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

    /// Evaluates the traffic of the run.
    pub(super) fn evaluate(&self, observed: &Observations) -> CaseResult {
        let broken = observed.faults.iter().find(|(_, fault)| fault.check == self.about.name);
        let Some((scenario, fault)) = broken else {
            let finding = observed
                .lack(self.requires)
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
    /// Adds the traffic of a scenario.
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
            RequiredTraffic::Reply if self.replies == 0 => Some("the client sent no Response"),
            _ => None,
        }
    }
}

/// Returns the fault of a Response (section 5).
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
