//! One case on one connection: what is sent is sent, and what comes is compared.
//!
//! A case ends with the probe, a call of our own whose answer must be the very next message. So every
//! case also says that nothing else came, and that the server still answers. Where an answer does not
//! come, the probe is sent early: once it is answered there is no use in waiting for long.
//!
//! What the server says of its own accord, its Notifications and Requests, is passed over unless the
//! case expects it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::dial::{Dialer, answer_to, is_ours};
use super::dialect;
use super::subject::Subject;
use super::talk::{Answer, Came, Talk};
use super::transcript::json::Json;
use super::transcript::{
    Bindings, Case, Crowd, Expected, ExpectedFrame, HeaderIs, HttpAnswer, Or, Order, Pattern,
    Profile, Step,
};
use super::verdict::{Fault, Finding, Said, shortened};
use crate::raw::target::Speech;

/// How long an answer is waited for before the probe asks whether it will come at all.
const QUICK: Duration = Duration::from_millis(250);
/// How long an answer may come after that of the probe, which was sent later.
const GRACE: Duration = Duration::from_millis(250);
/// How many messages of its own accord the server may send in one case.
const MAX_PASSED: usize = 1000;

/// A case under way.
pub(super) struct Trial<'a> {
    case: &'a Case,
    dialer: &'a Dialer,
    subject: &'a Subject,
    talk: &'a mut Talk,
    bindings: Bindings,
    /// What came in HTTP bodies and was not asked for yet.
    arrived: VecDeque<Vec<u8>>,
    /// The answer to the last POST, as long as nobody looked at it.
    posted: Option<Answer>,
    /// Connections beside this one.
    crowd: Vec<Talk>,
    pub(super) dialogue: Vec<Said>,
    /// The id of the probe that was sent early, until it is answered.
    early: Option<String>,
    is_closed: bool,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        case: &'a Case,
        dialer: &'a Dialer,
        subject: &'a Subject,
        talk: &'a mut Talk,
    ) -> Self {
        Self {
            case,
            dialer,
            subject,
            talk,
            bindings: subject.bindings(),
            arrived: VecDeque::new(),
            posted: None,
            crowd: Vec::new(),
            dialogue: Vec::new(),
            early: None,
            is_closed: false,
        }
    }

    /// Runs it. Whether the connection can be used again is what `Ok` says.
    pub(super) async fn run(&mut self) -> Result<bool, Finding> {
        for step in &self.case.steps {
            self.take(step).await?;
        }
        self.crowd.clear();
        let is_over = self.is_closed || (self.case.is_raw() && self.is_http());
        if is_over {
            self.dialer.is_alive(self.subject).await.map_err(|fault| {
                Finding::new(Fault::Silent, format!("on the next connection: {fault}"))
            })?;
            return Ok(false);
        }
        self.probe().await?;
        Ok(true)
    }

    fn is_http(&self) -> bool {
        matches!(self.dialer.target.speech, Speech::Http { .. })
    }

    async fn take(&mut self, step: &Step) -> Result<(), Finding> {
        match step {
            Step::Send(message) => self.send(&self.bindings.fill(message)).await,
            Step::Expect(expected) => self.expect(expected).await,
            Step::Unordered(patterns) => self.unordered(patterns).await,
            Step::Nothing => self.nothing(),
            Step::Raw(bytes) => {
                let bytes = self.bindings.fill(&self.places(bytes));
                self.say(&bytes);
                let sent = timeout(self.dialer.patience, self.talk.line(&bytes)).await;
                sent.map_err(|_| unread())
            }
            Step::Frame(first, payload) => {
                let payload = self.bindings.fill(payload);
                self.dialogue
                    .push(Said::Sent(format!("frame {first:#04x} {}", shortened(&payload))));
                let sent = timeout(self.dialer.patience, self.talk.frame(*first, &payload)).await;
                sent.map_err(|_| unread())
            }
            Step::Answer(expected) => match self.answer(expected).await {
                Err(finding) => self.excused(finding, expected.or),
                answered => answered,
            },
            Step::ExpectFrame(expected, or) => match self.control(expected).await {
                Err(finding) => self.excused(finding, *or),
                seen => seen,
            },
            Step::Closed => self.closed().await,
            Step::Wait(time) => {
                sleep(*time).await;
                Ok(())
            }
            Step::Crowd(crowd) => {
                self.gather(crowd).await;
                Ok(())
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.dialogue.push(Said::sent(bytes));
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.dialogue.push(Said::came(bytes));
    }

    /// The same bytes, with the endpoint's own host and path.
    fn places(&self, bytes: &[u8]) -> Vec<u8> {
        let (Speech::Http { path, host } | Speech::Ws { path, host }) = &self.dialer.target.speech
        else {
            return bytes.to_vec();
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => text.replace("<host>", host).replace("<path>", path).into_bytes(),
            Err(_) => bytes.to_vec(),
        }
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Finding> {
        if let Some(left) = self.arrived.pop_front() {
            return Err(extra(&left));
        }
        self.say(message);
        if self.is_http() {
            let answer = self.post(message).await?;
            self.arrived.extend((!answer.body.is_empty()).then(|| answer.body.clone()));
            self.posted = Some(answer);
            return Ok(());
        }
        let sent = timeout(self.dialer.patience, self.talk.send(message)).await;
        sent.map_err(|_| unread())
    }

    /// Asks by HTTP. A server may end a connection between two requests; then there is another.
    async fn post(&mut self, message: &[u8]) -> Result<Answer, Finding> {
        if self.talk.is_over() {
            self.redial().await?;
        }
        let patience = self.dialer.patience;
        timeout(patience, self.talk.send(message)).await.map_err(|_| unread())?;
        let answer = self.http_answer().await;
        let Err(Finding { fault: Fault::Closed, .. }) = &answer else { return answer };
        self.redial().await?;
        timeout(patience, self.talk.send(message)).await.map_err(|_| unread())?;
        self.http_answer().await
    }

    async fn redial(&mut self) -> Result<(), Finding> {
        let no_connection = |fault| Finding::new(Fault::Closed, format!("no connection: {fault}"));
        *self.talk = self.dialer.dial().await.map_err(no_connection)?;
        Ok(())
    }

    async fn expect(&mut self, expected: &Expected) -> Result<(), Finding> {
        let message = match self.message(&expected.any_of).await {
            Ok(message) => message,
            Err(finding) => {
                return self.excused(finding, expected.or).map_err(|f| due(f, &expected.any_of));
            }
        };
        self.matches(&expected.any_of, &message)
    }

    /// Whether silence or an end is as good.
    fn excused(&mut self, finding: Finding, or: Or) -> Result<(), Finding> {
        match finding.fault {
            Fault::Silent if or.silence => Ok(()),
            Fault::Closed if or.closed => {
                self.is_closed = true;
                Ok(())
            }
            _ => Err(finding),
        }
    }

    /// One of these is what came.
    fn matches(&mut self, any_of: &[Pattern], message: &[u8]) -> Result<(), Finding> {
        let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
        let mut fault = String::new();
        let message = &*self.in_our_words(message);
        for pattern in any_of {
            match pattern.matches(message, order, &mut self.bindings) {
                Ok(()) => return Ok(()),
                Err(found) if fault.is_empty() => fault = found,
                Err(_) => {}
            }
        }
        Err(due(Finding::new(Fault::Wrong, fault), any_of))
    }

    /// The same, as 2.0 writes it: Bitcoin Core answers with a null beside the result or the error.
    fn in_our_words<'m>(&self, message: &'m [u8]) -> Cow<'m, [u8]> {
        if self.dialer.profile != Profile::Bitcoin
            || self.case.facts.profiles.contains(&Profile::Bitcoin)
        {
            return Cow::Borrowed(message);
        }
        dialect::from_bitcoin(message).map_or(Cow::Borrowed(message), Cow::Owned)
    }

    async fn unordered(&mut self, patterns: &[Pattern]) -> Result<(), Finding> {
        let mut left: Vec<&Pattern> = patterns.iter().collect();
        while !left.is_empty() {
            let message = self.message(patterns).await.map_err(|finding| due(finding, patterns))?;
            let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
            let found = left
                .iter()
                .position(|one| one.matches(&message, order, &mut self.bindings).is_ok());
            match found {
                Some(at) => drop(left.swap_remove(at)),
                None => {
                    let what = "it is none of those that are due";
                    return Err(due(Finding::new(Fault::Wrong, what), patterns));
                }
            }
        }
        Ok(())
    }

    fn nothing(&mut self) -> Result<(), Finding> {
        if let Some(came) = self.arrived.pop_front() {
            return Err(extra(&came));
        }
        match &self.posted {
            Some(answer) if !(200..300).contains(&answer.status) => {
                let what = format!("expected a status of success, found {}", answer.status);
                Err(Finding::new(Fault::Wrong, what))
            }
            _ => Ok(()),
        }
    }

    /// The next message that can be an answer; the probe goes ahead where none comes.
    async fn message(&mut self, wanted: &[Pattern]) -> Result<Vec<u8>, Finding> {
        if self.is_http() {
            return self
                .arrived
                .pop_front()
                .ok_or_else(|| Finding::new(Fault::Silent, "the HTTP answer has no body"));
        }
        let may_probe = !self.case.is_raw();
        let begun = Instant::now();
        let mut deadline = begun + self.dialer.patience;
        let mut passed = 0;
        if may_probe {
            deadline = deadline.min(begun + QUICK);
        }
        loop {
            match timeout_at(deadline, self.talk.next()).await {
                Ok(Came::Message(message)) if self.is_early(&message) => {
                    self.early = None;
                    deadline = Instant::now() + GRACE;
                }
                Ok(Came::Message(message)) if is_ours(&message) => {}
                Ok(Came::Message(message)) => {
                    self.hear(&message);
                    if !self.is_own_accord(&message, wanted) {
                        return Ok(message);
                    }
                    passed += 1;
                    if passed > MAX_PASSED {
                        return Err(flood());
                    }
                }
                Ok(Came::Control(8, payload)) => return Err(self.close_frame(&payload)),
                Ok(Came::Control(..) | Came::Answer(_)) => {}
                Ok(Came::End(end)) => return Err(Finding::new(Fault::Closed, end)),
                Err(_)
                    if may_probe && deadline == begun + QUICK && QUICK < self.dialer.patience =>
                {
                    self.probe_early().await?;
                    deadline = begun + self.dialer.patience;
                }
                Err(_) => return Err(self.silence(begun)),
            }
        }
    }

    fn silence(&self, begun: Instant) -> Finding {
        let what = match &self.early {
            None if self.case.is_raw() => format!("nothing came within {:?}", self.dialer.patience),
            None => "no answer came, though a later call was answered".to_owned(),
            Some(_) => format!(
                "no answer came within {:.1}s, nor to the next call",
                begun.elapsed().as_secs_f64()
            ),
        };
        Finding::new(Fault::Silent, what)
    }

    async fn probe_early(&mut self) -> Result<(), Finding> {
        let (call, id) = self.dialer.probe(self.subject);
        self.early = Some(id);
        let sent = timeout(self.dialer.patience, self.talk.send(call.as_bytes())).await;
        sent.map_err(|_| unread())
    }

    fn is_early(&self, message: &[u8]) -> bool {
        self.early.as_ref().is_some_and(|id| answer_to(message, id).is_some())
    }

    /// Whether it is a Request or a Notification of the server's, and nobody waits for one.
    fn is_own_accord(&self, message: &[u8], wanted: &[Pattern]) -> bool {
        let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
        else {
            return false;
        };
        let expects = |pattern: &Pattern| {
            pattern.matches(message, Order::Free, &mut self.bindings.clone()).is_ok()
                || pattern.is_call()
        };
        json.member("method").is_some() && !wanted.iter().any(expects)
    }

    /// The next HTTP answer that is final.
    async fn http_answer(&mut self) -> Result<Answer, Finding> {
        loop {
            match self.came().await? {
                Came::Answer(answer) if answer.status < 200 && answer.status != 101 => {}
                Came::Answer(answer) => return Ok(answer),
                Came::End(end) => return Err(Finding::new(Fault::Closed, end)),
                Came::Message(_) | Came::Control(..) => {}
            }
        }
    }

    async fn came(&mut self) -> Result<Came, Finding> {
        let patience = self.dialer.patience;
        let came = timeout(patience, self.talk.next()).await.map_err(|_| {
            Finding::new(Fault::Silent, format!("nothing came within {patience:?}"))
        })?;
        match &came {
            Came::Answer(answer) => {
                let head = format!("HTTP {}", answer.status);
                let kind = answer.header("content-type").map(|kind| format!(" {kind}"));
                let text = shortened(&answer.body);
                let line = format!("{head}{} {text}", kind.unwrap_or_default());
                self.dialogue.push(Said::Came(line.trim_end().to_owned()));
            }
            Came::Message(message) => self.hear(&message.clone()),
            Came::Control(opcode, payload) => {
                let line = format!("frame {opcode:#04x} {}", shortened(payload));
                self.dialogue.push(Said::Came(line));
            }
            Came::End(_) => {}
        }
        Ok(came)
    }

    async fn answer(&mut self, expected: &HttpAnswer) -> Result<(), Finding> {
        let wrong = |what: String| Finding::new(Fault::Wrong, what);
        if let Some(answer) = self.posted.take() {
            return head_is(&answer, expected).map_err(wrong);
        }
        self.arrived.clear();
        let answer = loop {
            match self.came().await? {
                Came::Answer(answer)
                    if answer.status == 100 && !expected.statuses.has(answer.status) => {}
                Came::Answer(answer) => break answer,
                Came::End(end) => {
                    return Err(Finding::new(
                        Fault::Closed,
                        format!("{end}; expected status {}", expected.statuses.0),
                    ));
                }
                Came::Message(_) | Came::Control(..) => {
                    return Err(wrong("a WebSocket frame came instead of an answer".to_owned()));
                }
            }
        };
        head_is(&answer, expected).map_err(wrong)?;
        self.arrived.extend((!answer.body.is_empty()).then_some(answer.body));
        Ok(())
    }

    async fn control(&mut self, expected: &ExpectedFrame) -> Result<(), Finding> {
        loop {
            let came = self.came().await.map_err(|f| f_due(f, expected))?;
            match (came, expected) {
                (Came::Message(message), _) if is_ours(&message) => {}
                (Came::Control(10, payload), ExpectedFrame::Pong(wanted)) if payload == *wanted => {
                    return Ok(());
                }
                (Came::Control(8, payload), ExpectedFrame::Close(codes)) => {
                    self.is_closed = true;
                    let code = close_code(&payload);
                    if codes.is_empty() || codes.contains(&code) {
                        return Ok(());
                    }
                    let what = format!("expected close code {codes:?}, found {code}");
                    return Err(Finding::new(Fault::Wrong, what));
                }
                (Came::End(end), _) => {
                    return Err(f_due(Finding::new(Fault::Closed, end), expected));
                }
                (Came::Message(_) | Came::Control(..) | Came::Answer(_), _) => {
                    let what = "something else came";
                    return Err(f_due(Finding::new(Fault::Wrong, what), expected));
                }
            }
        }
    }

    /// Waits for the end, whatever is said before it.
    async fn closed(&mut self) -> Result<(), Finding> {
        let deadline = Instant::now() + self.dialer.patience;
        self.is_closed = true;
        for _ in 0..MAX_PASSED {
            match timeout_at(deadline, self.came()).await {
                Ok(Ok(Came::End(_) | Came::Control(8, _))) => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => {
                    let what = "the server must close the connection, and does not";
                    return Err(Finding::new(Fault::Wrong, what));
                }
            }
        }
        Err(flood())
    }

    /// Opens connections beside this one. That a server refuses some is its right.
    async fn gather(&mut self, crowd: &Crowd) {
        let bytes = self.bindings.fill(&self.places(&crowd.bytes));
        let verb = if crowd.stays { "open" } else { "open and drop" };
        self.dialogue.push(Said::Sent(format!(
            "({verb} {} connections) {}",
            crowd.count,
            shortened(&bytes)
        )));
        for _ in 0..crowd.count {
            let Ok(mut talk) = self.dialer.connect(false).await else { continue };
            let _ = timeout(QUICK, talk.raw(&bytes)).await;
            if crowd.stays {
                self.crowd.push(talk);
            }
        }
    }

    /// An ordinary call gets its ordinary answer, and nothing comes before it.
    async fn probe(&mut self) -> Result<(), Finding> {
        if let Some(left) = self.arrived.pop_front() {
            return Err(extra(&left));
        }
        let (call, id) = self.dialer.probe(self.subject);
        if self.is_http() {
            let answer = self.post(call.as_bytes()).await?;
            return self.probed(&answer.body, &id);
        }
        let sent = timeout(self.dialer.patience, self.talk.send(call.as_bytes())).await;
        sent.map_err(|_| unread())?;
        let deadline = Instant::now() + self.dialer.patience;
        for _ in 0..MAX_PASSED {
            let came = timeout_at(deadline, self.talk.next()).await.map_err(|_| {
                Finding::new(Fault::Silent, "the call after this case was not answered")
            })?;
            let message = match came {
                Came::Message(message) => message,
                Came::Control(8, payload) => return Err(self.close_frame(&payload)),
                Came::Control(..) | Came::Answer(_) => continue,
                Came::End(end) => return Err(Finding::new(Fault::Closed, end)),
            };
            if answer_to(&message, &id).is_some() {
                return self.probed(&message, &id);
            }
            if is_ours(&message) {
                continue;
            }
            self.hear(&message);
            if !self.is_own_accord(&message, &[]) {
                return Err(extra(&message));
            }
        }
        Err(flood())
    }

    fn probed(&mut self, message: &[u8], id: &str) -> Result<(), Finding> {
        let wrong = |fault| Finding::new(Fault::Wrong, format!("after this case: {fault}"));
        match answer_to(message, id) {
            Some(answer) => self.subject.recognises(&answer).map_err(wrong),
            None => {
                let found = shortened(message);
                Err(wrong(format!("{} now gives {found}", self.subject.method)))
            }
        }
    }

    fn close_frame(&mut self, payload: &[u8]) -> Finding {
        let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned();
        let what = format!("the server sent a close frame {} {reason}", close_code(payload));
        Finding::new(Fault::Closed, what.trim_end())
    }
}

fn close_code(payload: &[u8]) -> u16 {
    match payload {
        [high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => 1005,
    }
}

fn head_is(answer: &Answer, expected: &HttpAnswer) -> Result<(), String> {
    if !expected.statuses.has(answer.status) {
        return Err(format!("expected status {}, found {}", expected.statuses.0, answer.status));
    }
    expected.headers.iter().try_for_each(|(name, is)| header_is(answer, name, is))
}

fn header_is(answer: &Answer, name: &str, is: &HeaderIs) -> Result<(), String> {
    match (is, answer.header(name)) {
        (HeaderIs::Absent, None) | (HeaderIs::Any, Some(_)) => Ok(()),
        (HeaderIs::Holding(text), Some(value)) if value.to_ascii_lowercase().contains(text) => {
            Ok(())
        }
        (HeaderIs::Absent, Some(value)) => Err(format!("expected no header {name}, found {value}")),
        (HeaderIs::Any, None) => Err(format!("expected a header {name}, found none")),
        (HeaderIs::Holding(text), Some(value)) => {
            Err(format!("expected the header {name} to hold {text}, found {value}"))
        }
        (HeaderIs::Holding(text), None) => {
            Err(format!("expected the header {name} to hold {text}, found none"))
        }
    }
}

/// The finding, with what should have come.
fn due(finding: Finding, any_of: &[Pattern]) -> Finding {
    let wanted: Vec<String> = any_of.iter().map(ToString::to_string).collect();
    Finding::new(
        finding.fault,
        format!("{}\nexpected {}", finding.reason, wanted.join("\n      or ")),
    )
}

fn f_due(finding: Finding, expected: &ExpectedFrame) -> Finding {
    let wanted = match expected {
        ExpectedFrame::Pong(payload) => format!("a pong with {:?}", shortened(payload)),
        ExpectedFrame::Close(codes) if codes.is_empty() => "a close frame".to_owned(),
        ExpectedFrame::Close(codes) => format!("a close frame with code {codes:?}"),
    };
    Finding::new(finding.fault, format!("{}\nexpected {wanted}", finding.reason))
}

fn extra(message: &[u8]) -> Finding {
    Finding::new(Fault::Extra, format!("nobody asked for {}", shortened(message)))
}

fn unread() -> Finding {
    Finding::new(Fault::Silent, "the server does not read what is sent")
}

fn flood() -> Finding {
    Finding::new(Fault::Extra, "the server floods: a thousand messages came unasked")
}
