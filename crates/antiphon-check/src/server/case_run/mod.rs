//! The run of one case on one connection: sends its messages and compares the replies.
//!
//! A case ends with a probe: an ordinary call, whose reply must be the next message. So every case also
//! checks that nothing else arrives, and that the server still replies. If an expected reply does not
//! arrive, the probe is sent early: once the server replies to the probe, a long wait is pointless.
//!
//! Notifications and Requests of the server are skipped unless the case expects them.

mod left_behind;
mod next_reply;
mod protocol_steps;
mod reply_wait;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connection::{ConnectionEnd, HttpResponse, ServerConnection};
use super::methods::ServerMethods;
use super::normalize_bitcoin;
use super::server_access::ServerAccess;
use crate::raw::TargetLocation;
use crate::result::{DialogueLine, FailureKind, Finding, shortened};
use crate::transcript::{
    Alternative, Bindings, CaseStep, ExpectedMessage, Order, Pattern, Profile, TranscriptCase,
};

/// The limit of unsolicited messages in one case.
const MAX_UNSOLICITED: usize = 2_500;

/// The use of the connection after a passed case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAfter {
    /// The next case can use it.
    UseAgain,
    /// It cannot be used again. The probe goes to a new connection, after this one is closed: some
    /// servers take one connection at a time.
    ProbeElsewhere,
}

/// A running case.
pub(super) struct CaseRun<'a> {
    case: &'a TranscriptCase,
    server_access: &'a ServerAccess,
    methods: &'a ServerMethods,
    connection: &'a mut ServerConnection,
    bindings: Bindings,
    /// HTTP bodies that no step has compared yet.
    arrived: VecDeque<Vec<u8>>,
    /// The bodies in `arrived` may stay without a comparison.
    ignores_body: bool,
    /// The response to the last POST, until a step compares it.
    posted: Option<HttpResponse>,
    /// Connections beside this one.
    extra_connections: Vec<ServerConnection>,
    pub(super) dialogue: Vec<DialogueLine>,
    /// The id of a probe that was sent early, until its reply arrives.
    early_probe: Option<String>,
    /// The cases that used the connection before.
    earlier: Vec<&'a TranscriptCase>,
    /// Messages that were read ahead. They are the next ones.
    read_ahead: VecDeque<Vec<u8>>,
    /// Messages that only an earlier case can have caused.
    pub(super) left_behind: Vec<Vec<u8>>,
    /// Messages beside the expected ones, caused by an earlier case or by this one.
    pub(super) in_doubt: Vec<Vec<u8>>,
    is_closed: bool,
    /// The case ended early by an allowed alternative: silence or a closed connection.
    ended_early: bool,
}

impl<'a> CaseRun<'a> {
    pub(super) fn new(
        case: &'a TranscriptCase,
        server_access: &'a ServerAccess,
        methods: &'a ServerMethods,
        connection: &'a mut ServerConnection,
        earlier: Vec<&'a TranscriptCase>,
    ) -> Self {
        Self {
            case,
            server_access,
            methods,
            connection,
            bindings: methods.bindings(),
            arrived: VecDeque::new(),
            ignores_body: false,
            posted: None,
            extra_connections: Vec::new(),
            dialogue: Vec::new(),
            early_probe: None,
            earlier,
            read_ahead: VecDeque::new(),
            left_behind: Vec::new(),
            in_doubt: Vec::new(),
            is_closed: false,
            ended_early: false,
        }
    }

    /// Runs the case. Returns the further use of the connection.
    pub(super) async fn run(&mut self) -> Result<ConnectionAfter, Finding> {
        for step in &self.case.steps {
            self.step(step).await?;
            if self.ended_early {
                break;
            }
        }
        self.extra_connections.clear();
        if self.ignores_body {
            self.arrived.clear();
        }
        let is_used_up = self.is_closed
            || self.case.facts.is_without_handshake
            || (self.case.is_raw() && self.connection.speaks_http());
        if is_used_up {
            return Ok(ConnectionAfter::ProbeElsewhere);
        }
        match self.probe().await {
            // A server may close the connection after a reply, but it must not crash.
            Err(Finding { fault: FailureKind::Closed, .. }) if !self.is_child() => {
                Ok(ConnectionAfter::ProbeElsewhere)
            }
            Ok(()) if !self.in_doubt.is_empty() => Err(extra(&self.in_doubt[0])),
            probed => probed.map(|()| ConnectionAfter::UseAgain),
        }
    }

    fn is_child(&self) -> bool {
        matches!(self.server_access.target.location, TargetLocation::Child(_))
    }

    async fn step(&mut self, step: &CaseStep) -> Result<(), Finding> {
        match step {
            CaseStep::Send(text) => self.send(&self.bindings.fill(&text.bytes())).await,
            CaseStep::Expect(expected) => self.expect(expected).await,
            CaseStep::Unordered(patterns) => self.unordered(patterns).await,
            CaseStep::Nothing => self.nothing().await,
            CaseStep::Raw(text) => {
                let bytes = self.bindings.fill(&self.fill_address(&text.bytes()));
                self.record_sent(&bytes);
                let limit = self.server_access.timing.send_timeout(bytes.len());
                let sent = timeout(limit, self.connection.line(&bytes)).await;
                sent.map_err(|_| unread())
            }
            CaseStep::Frame(first, payload) => {
                let payload = self.bindings.fill(&payload.bytes());
                self.dialogue.push(DialogueLine::Sent(format!(
                    "frame {first:#04x} {}",
                    shortened(&payload)
                )));
                let reply_timeout = self.server_access.timing.reply_timeout();
                let sent = timeout(reply_timeout, self.connection.frame(*first, &payload)).await;
                sent.map_err(|_| unread())
            }
            // A status means nothing over a stream.
            CaseStep::Response(_) if self.server_access.is_stream() => Ok(()),
            CaseStep::Response(expected) => match self.response(expected).await {
                Err(finding) => self.allowed(finding, expected.or),
                answered => answered,
            },
            CaseStep::ExpectFrame(expected, or) => match self.control(expected).await {
                Err(finding) => self.allowed(finding, *or),
                seen => seen,
            },
            CaseStep::Closed => self.closed().await,
            CaseStep::Header(name, value) => {
                let value = value.as_ref().map(|text| {
                    let bytes = self.fill_address(&text.bytes());
                    self.bindings.fill_header(&String::from_utf8_lossy(&bytes))
                });
                let shown = value.as_deref().unwrap_or("<none>");
                self.dialogue.push(DialogueLine::Sent(format!("({name}: {shown})")));
                self.connection.post_headers.push((name.clone(), value));
                Ok(())
            }
            CaseStep::Wait(time) => {
                sleep(*time).await;
                Ok(())
            }
            CaseStep::Connect(crowd) => {
                self.open_extra(crowd).await;
                Ok(())
            }
        }
    }

    /// Returns the timeout of one reply. The tool of an MCP server may be slower than other methods, and so is the
    /// first response of a process.
    fn reply_timeout(&self) -> Duration {
        let timing = &self.server_access.timing;
        let Some(mcp) = &self.methods.mcp else { return timing.reply_timeout() };
        if self.case.facts.is_without_handshake {
            return timing.full_timeout() + 2 * mcp.start;
        }
        let patience = if self.case.is_slow() { 3 * mcp.tool_took } else { Duration::ZERO };
        timing.full_timeout() + patience
    }

    fn record_sent(&mut self, bytes: &[u8]) {
        self.dialogue.push(DialogueLine::sent(bytes));
    }

    fn record_received(&mut self, bytes: &[u8]) {
        self.dialogue.push(DialogueLine::received(bytes));
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Finding> {
        if std::mem::take(&mut self.ignores_body) {
            self.arrived.clear();
        }
        if let Some(left) = self.arrived.pop_front() {
            return Err(extra(&left));
        }
        self.record_sent(message);
        if self.server_access.is_http() {
            let posted = self.post(message).await;
            self.connection.post_headers.clear();
            let response = posted?;
            self.arrived.extend((!response.body.is_empty()).then(|| response.body.clone()));
            self.posted = Some(response);
            return Ok(());
        }
        self.transmit(message).await
    }

    /// Sends a message. Fails if the server does not read it.
    async fn transmit(&mut self, message: &[u8]) -> Result<(), Finding> {
        let limit = self.server_access.timing.send_timeout(message.len());
        let sent = timeout(limit, self.connection.send(message)).await;
        sent.map_err(|_| unread())
    }

    async fn expect(&mut self, expected: &ExpectedMessage) -> Result<(), Finding> {
        loop {
            let message = match self.message(&expected.any_of).await {
                Ok(message) => message,
                Err(finding) => {
                    return self
                        .allowed(finding, expected.or)
                        .map_err(|f| expected_any(&f, &expected.any_of));
                }
            };
            let Err(finding) = self.matches(&expected.any_of, &message) else { return Ok(()) };
            let any_of: Vec<&Pattern> = expected.any_of.iter().collect();
            self.set_aside(message, finding, &any_of).await?;
        }
    }

    /// Accepts the finding if the case allows silence or a closed connection instead.
    fn allowed(&mut self, finding: Finding, or: Alternative) -> Result<(), Finding> {
        let is_allowed = match finding.fault {
            FailureKind::Silent => or.silence,
            FailureKind::Closed => or.closed,
            _ => false,
        };
        if !is_allowed {
            return Err(finding);
        }
        self.is_closed |= finding.fault == FailureKind::Closed;
        self.ended_early = self.is_closed;
        Ok(())
    }

    /// Compares a message with the patterns; one must match.
    fn matches(&mut self, any_of: &[Pattern], message: &[u8]) -> Result<(), Finding> {
        let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
        let mut fault = String::new();
        let message = &*self.normalized(message);
        for pattern in any_of {
            match pattern.matches(message, order, &mut self.bindings) {
                Ok(()) => return Ok(()),
                // Reports the mismatch of the closest pattern: one that differs in more than the id.
                Err(found) if fault.is_empty() || fault.starts_with("at `id`") => fault = found,
                Err(_) => {}
            }
        }
        Err(expected_any(&Finding::new(FailureKind::Wrong, fault), any_of))
    }

    /// Returns the message as JSON-RPC 2.0: Bitcoin Core adds a null `error` or `result`.
    fn normalized<'m>(&self, message: &'m [u8]) -> Cow<'m, [u8]> {
        if self.server_access.profile != Profile::Bitcoin
            || self.case.facts.profiles.contains(&Profile::Bitcoin)
        {
            return Cow::Borrowed(message);
        }
        normalize_bitcoin::from_bitcoin(message).map_or(Cow::Borrowed(message), Cow::Owned)
    }

    async fn unordered(&mut self, patterns: &[Pattern]) -> Result<(), Finding> {
        let mut left: Vec<&Pattern> = patterns.iter().collect();
        while !left.is_empty() {
            let message =
                self.message(patterns).await.map_err(|finding| expected_any(&finding, patterns))?;
            let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
            let normalized = self.normalized(&message);
            let found = left
                .iter()
                .position(|one| one.matches(&normalized, order, &mut self.bindings).is_ok());
            match found {
                Some(at) => drop(left.swap_remove(at)),
                None => {
                    let what = "it matches none of the expected messages";
                    let finding = Finding::new(FailureKind::Wrong, what);
                    self.set_aside(message, expected_any(&finding, patterns), &left).await?;
                }
            }
        }
        Ok(())
    }

    async fn nothing(&mut self) -> Result<(), Finding> {
        if self.connection.is_streaming()
            && let Some(message) = self.streamed(&[]).await?
        {
            return Err(extra(&message));
        }
        if let Some(event) = self.arrived.pop_front() {
            return Err(extra(&event));
        }
        match &self.posted {
            Some(response) if !(200..300).contains(&response.status) => {
                let what = format!("expected a 2xx status, found {}", response.status);
                Err(Finding::new(FailureKind::Wrong, what))
            }
            _ => Ok(()),
        }
    }
}

/// Adds the expected messages to a finding.
fn expected_any(finding: &Finding, any_of: &[Pattern]) -> Finding {
    let wanted: Vec<String> = any_of.iter().map(ToString::to_string).collect();
    Finding::new(
        finding.fault,
        format!("{}\nexpected {}", finding.reason, wanted.join("\n      or ")),
    )
}

/// Returns the finding for an ended connection. A violation of the wire's protocol is not a close.
fn ended(end: ConnectionEnd) -> Finding {
    Finding::new(if end.is_violation { FailureKind::Wrong } else { FailureKind::Closed }, end.what)
}

fn extra(message: &[u8]) -> Finding {
    Finding::new(FailureKind::Extra, format!("an unexpected message: {}", shortened(message)))
}

fn unread() -> Finding {
    Finding::new(FailureKind::Silent, "the server does not read the request")
}

fn flood() -> Finding {
    Finding::new(FailureKind::Extra, "the server floods: it sent thousands of unsolicited messages")
}
