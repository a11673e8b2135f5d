//! One case on one connection: what is sent is sent, and what comes is compared.
//!
//! A case ends with the probe, a call of our own whose answer must be the very next message. So every
//! case also says that nothing else came, and that the server still answers. Where an answer does not
//! come, the probe is sent early: once it is answered there is no use in waiting for long.
//!
//! What the server says of its own accord, its Notifications and Requests, is passed over unless the
//! case expects it.

mod expectations;
mod protocol_steps;

use std::borrow::Cow;
use std::collections::VecDeque;

use tokio::time::{sleep, timeout};

use super::bitcoin;
use super::connection::{ConnectionEnd, HttpResponse, ServerConnection};
use super::dialer::Dialer;
use super::methods::ServerMethods;
use crate::raw::TargetLocation;
use crate::result::{DialogueLine, FailureKind, Finding, shortened};
use crate::transcript::{
    Alternative, Bindings, CaseStep, ExpectedMessage, Order, Pattern, Profile, TranscriptCase,
};

/// How many messages of its own accord the server may send in one case.
const MAX_PASSED: usize = 2_500;

/// What is left to do once a case has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAfter {
    /// The connection is in order.
    UseAgain,
    /// It is not, and whether the server lives has to be asked on another, once this one is closed: some
    /// serve one at a time.
    ProbeElsewhere,
}

/// A case under way.
pub(super) struct CaseRun<'a> {
    case: &'a TranscriptCase,
    dialer: &'a Dialer,
    methods: &'a ServerMethods,
    connection: &'a mut ServerConnection,
    bindings: Bindings,
    /// What came in HTTP bodies and was not asked for yet.
    arrived: VecDeque<Vec<u8>>,
    /// Nobody has to ask for it.
    is_free: bool,
    /// The answer to the last POST, as long as nobody looked at it.
    posted: Option<HttpResponse>,
    /// Connections beside this one.
    crowd: Vec<ServerConnection>,
    pub(super) dialogue: Vec<DialogueLine>,
    /// The id of the probe that was sent early, until it is answered.
    early: Option<String>,
    is_closed: bool,
    /// An end or silence came where that is as good: there is no more to see.
    is_excused: bool,
}

impl<'a> CaseRun<'a> {
    pub(super) fn new(
        case: &'a TranscriptCase,
        dialer: &'a Dialer,
        methods: &'a ServerMethods,
        connection: &'a mut ServerConnection,
    ) -> Self {
        Self {
            case,
            dialer,
            methods,
            connection,
            bindings: methods.bindings(),
            arrived: VecDeque::new(),
            is_free: false,
            posted: None,
            crowd: Vec::new(),
            dialogue: Vec::new(),
            early: None,
            is_closed: false,
            is_excused: false,
        }
    }

    /// Runs it, and says what is left to do.
    pub(super) async fn run(&mut self) -> Result<ConnectionAfter, Finding> {
        for step in &self.case.steps {
            self.take(step).await?;
            if self.is_excused {
                break;
            }
        }
        self.crowd.clear();
        if self.is_free {
            self.arrived.clear();
        }
        if self.is_closed || (self.case.is_raw() && self.connection.speaks_http()) {
            return Ok(ConnectionAfter::ProbeElsewhere);
        }
        match self.probe().await {
            // To close after an answer is allowed where nobody says otherwise; to be gone is not.
            Err(Finding { fault: FailureKind::Closed, .. }) if !self.is_child() => {
                Ok(ConnectionAfter::ProbeElsewhere)
            }
            probed => probed.map(|()| ConnectionAfter::UseAgain),
        }
    }

    fn is_child(&self) -> bool {
        matches!(self.dialer.target.location, TargetLocation::Child(_))
    }

    async fn take(&mut self, step: &CaseStep) -> Result<(), Finding> {
        match step {
            CaseStep::Send(text) => self.send(&self.bindings.fill(&text.bytes())).await,
            CaseStep::Expect(expected) => self.expect(expected).await,
            CaseStep::Unordered(patterns) => self.unordered(patterns).await,
            CaseStep::Nothing => self.nothing(),
            CaseStep::Raw(text) => {
                let bytes = self.bindings.fill(&self.places(&text.bytes()));
                self.say(&bytes);
                let sent = timeout(self.dialer.patience(), self.connection.line(&bytes)).await;
                sent.map_err(|_| unread())
            }
            CaseStep::Frame(first, payload) => {
                let payload = self.bindings.fill(&payload.bytes());
                self.dialogue.push(DialogueLine::Sent(format!(
                    "frame {first:#04x} {}",
                    shortened(&payload)
                )));
                let sent =
                    timeout(self.dialer.patience(), self.connection.frame(*first, &payload)).await;
                sent.map_err(|_| unread())
            }
            CaseStep::Answer(expected) => match self.answer(expected).await {
                Err(finding) => self.excused(finding, expected.or),
                answered => answered,
            },
            CaseStep::ExpectFrame(expected, or) => match self.control(expected).await {
                Err(finding) => self.excused(finding, *or),
                seen => seen,
            },
            CaseStep::Closed => self.closed().await,
            CaseStep::Wait(time) => {
                sleep(*time).await;
                Ok(())
            }
            CaseStep::Crowd(crowd) => {
                self.gather(crowd).await;
                Ok(())
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.dialogue.push(DialogueLine::sent(bytes));
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.dialogue.push(DialogueLine::received(bytes));
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Finding> {
        if std::mem::take(&mut self.is_free) {
            self.arrived.clear();
        }
        if let Some(left) = self.arrived.pop_front() {
            return Err(extra(&left));
        }
        self.say(message);
        if self.dialer.is_http() {
            let answer = self.post(message).await?;
            self.arrived.extend((!answer.body.is_empty()).then(|| answer.body.clone()));
            self.posted = Some(answer);
            return Ok(());
        }
        let sent = timeout(self.dialer.patience(), self.connection.send(message)).await;
        sent.map_err(|_| unread())
    }

    async fn expect(&mut self, expected: &ExpectedMessage) -> Result<(), Finding> {
        let message = match self.message(&expected.any_of).await {
            Ok(message) => message,
            Err(finding) => {
                return self.excused(finding, expected.or).map_err(|f| due(&f, &expected.any_of));
            }
        };
        self.matches(&expected.any_of, &message)
    }

    /// Whether silence or an end is as good.
    fn excused(&mut self, finding: Finding, or: Alternative) -> Result<(), Finding> {
        let is_excused = match finding.fault {
            FailureKind::Silent => or.silence,
            FailureKind::Closed => or.closed,
            _ => false,
        };
        if !is_excused {
            return Err(finding);
        }
        self.is_closed |= finding.fault == FailureKind::Closed;
        self.is_excused = self.is_closed;
        Ok(())
    }

    /// One of these is what came.
    fn matches(&mut self, any_of: &[Pattern], message: &[u8]) -> Result<(), Finding> {
        let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
        let mut fault = String::new();
        let message = &*self.in_our_words(message);
        for pattern in any_of {
            match pattern.matches(message, order, &mut self.bindings) {
                Ok(()) => return Ok(()),
                // Of several, the one that is more than another id tells most.
                Err(found) if fault.is_empty() || fault.starts_with("at `id`") => fault = found,
                Err(_) => {}
            }
        }
        Err(due(&Finding::new(FailureKind::Wrong, fault), any_of))
    }

    /// The same, as 2.0 writes it: Bitcoin Core answers with a null beside the result or the error.
    fn in_our_words<'m>(&self, message: &'m [u8]) -> Cow<'m, [u8]> {
        if self.dialer.profile != Profile::Bitcoin
            || self.case.facts.profiles.contains(&Profile::Bitcoin)
        {
            return Cow::Borrowed(message);
        }
        bitcoin::from_bitcoin(message).map_or(Cow::Borrowed(message), Cow::Owned)
    }

    async fn unordered(&mut self, patterns: &[Pattern]) -> Result<(), Finding> {
        let mut left: Vec<&Pattern> = patterns.iter().collect();
        while !left.is_empty() {
            let message =
                self.message(patterns).await.map_err(|finding| due(&finding, patterns))?;
            let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
            let found = left
                .iter()
                .position(|one| one.matches(&message, order, &mut self.bindings).is_ok());
            match found {
                Some(at) => drop(left.swap_remove(at)),
                None => {
                    let what = "it is none of those that are due";
                    return Err(due(&Finding::new(FailureKind::Wrong, what), patterns));
                }
            }
        }
        Ok(())
    }

    fn nothing(&mut self) -> Result<(), Finding> {
        if let Some(event) = self.arrived.pop_front() {
            return Err(extra(&event));
        }
        match &self.posted {
            Some(answer) if !(200..300).contains(&answer.status) => {
                let what = format!("expected a status of success, found {}", answer.status);
                Err(Finding::new(FailureKind::Wrong, what))
            }
            _ => Ok(()),
        }
    }
}

/// The finding, with what should have come.
fn due(finding: &Finding, any_of: &[Pattern]) -> Finding {
    let wanted: Vec<String> = any_of.iter().map(ToString::to_string).collect();
    Finding::new(
        finding.fault,
        format!("{}\nexpected {}", finding.reason, wanted.join("\n      or ")),
    )
}

/// Nonsense is no way to close a connection.
fn ended(end: ConnectionEnd) -> Finding {
    Finding::new(if end.is_nonsense { FailureKind::Wrong } else { FailureKind::Closed }, end.what)
}

fn extra(message: &[u8]) -> Finding {
    Finding::new(FailureKind::Extra, format!("nobody asked for {}", shortened(message)))
}

fn unread() -> Finding {
    Finding::new(FailureKind::Silent, "the server does not read what is sent")
}

fn flood() -> Finding {
    Finding::new(FailureKind::Extra, "the server floods: thousands of messages came unasked")
}
