//! What lies below messages: HTTP's heads, frames of a WebSocket, the end of a connection, crowds.

use tokio::time::{Instant, timeout, timeout_at};

use super::expectations::close_code;
use super::{CaseRun, MAX_PASSED, ended, flood};
use crate::raw::AddressProtocol;
use crate::result::{DialogueLine, FailureKind, Finding, shortened};
use crate::server::connection::{HttpResponse, ServerEvent};
use crate::server::dialer::{PACE, is_ours};
use crate::transcript::{ExpectedFrame, ExpectedHeader, ExpectedResponse, ExtraConnections};

impl CaseRun<'_> {
    /// The same bytes, with the endpoint's own host and path.
    pub(super) fn places(&self, bytes: &[u8]) -> Vec<u8> {
        let (AddressProtocol::Http { path, host } | AddressProtocol::Ws { path, host }) =
            &self.dialer.target.address.protocol
        else {
            return bytes.to_vec();
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => text.replace("<host>", host).replace("<path>", path).into_bytes(),
            Err(_) => bytes.to_vec(),
        }
    }

    /// Asks by HTTP.
    pub(super) async fn post(&mut self, message: &[u8]) -> Result<HttpResponse, Finding> {
        let (begun, patience) = (Instant::now(), self.dialer.patience());
        let posted = timeout(patience, self.dialer.post(self.connection, message)).await;
        let answer = posted.map_err(|_| self.silence(begun))?.map_err(ended)?;
        self.dialogue.push(told(&answer));
        Ok(answer)
    }

    /// What comes next, before the patience that began then is over.
    pub(super) async fn event(&mut self, begun: Instant) -> Result<ServerEvent, Finding> {
        let deadline = begun + self.dialer.patience();
        let event =
            timeout_at(deadline, self.connection.next()).await.map_err(|_| self.silence(begun))?;
        match &event {
            ServerEvent::Answer(answer) => self.dialogue.push(told(answer)),
            ServerEvent::Message(message) => self.hear(&message.clone()),
            ServerEvent::Control(opcode, payload) => {
                let line = format!("frame {opcode:#04x} {}", shortened(payload));
                self.dialogue.push(DialogueLine::Received(line));
            }
            ServerEvent::End(_) => {}
        }
        Ok(event)
    }

    pub(super) async fn answer(&mut self, expected: &ExpectedResponse) -> Result<(), Finding> {
        let wrong = |what: String| Finding::new(FailureKind::Wrong, what);
        if let Some(answer) = self.posted.take() {
            return head_is(&answer, expected).map_err(wrong);
        }
        self.arrived.clear();
        let begun = Instant::now();
        let is_aside = |status: u16| matches!(status, 100 | 102..200);
        let mut passed = 0..MAX_PASSED;
        let answer = loop {
            passed.next().ok_or_else(flood)?;
            match self.event(begun).await? {
                ServerEvent::Answer(answer)
                    if is_aside(answer.status) && !expected.statuses.has(answer.status) => {}
                ServerEvent::Answer(answer) => break answer,
                ServerEvent::End(end) => {
                    let Finding { fault, reason } = ended(end);
                    let what = format!("{reason}; expected status {}", expected.statuses.0);
                    return Err(Finding::new(fault, what));
                }
                ServerEvent::Message(_) | ServerEvent::Control(..) => {
                    return Err(wrong("a WebSocket frame came instead of an answer".to_owned()));
                }
            }
        };
        head_is(&answer, expected).map_err(wrong)?;
        self.arrived.extend((!answer.body.is_empty()).then_some(answer.body));
        self.is_free = true;
        Ok(())
    }

    pub(super) async fn control(&mut self, expected: &ExpectedFrame) -> Result<(), Finding> {
        let begun = Instant::now();
        for _ in 0..MAX_PASSED {
            let event = self.event(begun).await.map_err(|finding| f_due(&finding, expected))?;
            match (event, expected) {
                (ServerEvent::Message(message), _)
                    if is_ours(&message) || self.is_own_accord(&message, &[]) => {}
                (ServerEvent::Control(10, payload), ExpectedFrame::Pong(wanted))
                    if payload == *wanted =>
                {
                    return Ok(());
                }
                (ServerEvent::Control(8, payload), ExpectedFrame::Close(codes)) => {
                    self.is_closed = true;
                    let code = close_code(&payload);
                    if codes.is_empty() || codes.contains(&code) {
                        return Ok(());
                    }
                    let what = format!("expected close code {codes:?}, found {code}");
                    return Err(Finding::new(FailureKind::Wrong, what));
                }
                (ServerEvent::End(end), _) => return Err(f_due(&ended(end), expected)),
                // A pong may come unasked (RFC 6455, section 5.5.3).
                (ServerEvent::Control(10, _), _) => {}
                (
                    ServerEvent::Message(_) | ServerEvent::Control(..) | ServerEvent::Answer(_),
                    _,
                ) => {
                    let what = "something else came";
                    return Err(f_due(&Finding::new(FailureKind::Wrong, what), expected));
                }
            }
        }
        Err(flood())
    }

    /// Waits for the end, whatever is said before it.
    pub(super) async fn closed(&mut self) -> Result<(), Finding> {
        let begun = Instant::now();
        self.is_closed = true;
        for _ in 0..MAX_PASSED {
            match self.event(begun).await {
                Ok(ServerEvent::End(end)) if end.is_nonsense => return Err(ended(end)),
                Ok(ServerEvent::End(_) | ServerEvent::Control(8, _)) => return Ok(()),
                Ok(_) => {}
                Err(_) => {
                    let what = "the server must close the connection, and does not";
                    return Err(Finding::new(FailureKind::Wrong, what));
                }
            }
        }
        Err(flood())
    }

    /// Opens connections beside this one. That a server refuses some is its right.
    pub(super) async fn gather(&mut self, crowd: &ExtraConnections) {
        let bytes = self.bindings.fill(&self.places(&crowd.text.bytes()));
        let verb = if crowd.stays { "open" } else { "open and drop" };
        self.dialogue.push(DialogueLine::Sent(format!(
            "({verb} {} connections) {}",
            crowd.count,
            shortened(&bytes)
        )));
        for _ in 0..crowd.count {
            let Ok(mut connection) = self.dialer.connect(true).await else { continue };
            let _ = timeout(PACE, connection.raw(&bytes)).await;
            if crowd.stays {
                self.crowd.push(connection);
            }
        }
    }
}

/// An answer, as the dialogue shows it.
fn told(answer: &HttpResponse) -> DialogueLine {
    let kind = answer.header("content-type").map(|kind| format!(" {kind}"));
    let text = shortened(&answer.body);
    let line = format!("HTTP {}{} {text}", answer.status, kind.unwrap_or_default());
    DialogueLine::Received(line.trim_end().to_owned())
}

fn head_is(answer: &HttpResponse, expected: &ExpectedResponse) -> Result<(), String> {
    if expected.or_statuses.iter().any(|statuses| statuses.has(answer.status)) {
        return Ok(());
    }
    if !expected.statuses.has(answer.status) {
        return Err(format!("expected status {}, found {}", expected.statuses.0, answer.status));
    }
    expected.headers.iter().try_for_each(|(name, is)| header_is(answer, name, is))
}

fn header_is(answer: &HttpResponse, name: &str, is: &ExpectedHeader) -> Result<(), String> {
    match (is, answer.header(name)) {
        (ExpectedHeader::Absent, None) | (ExpectedHeader::Any, Some(_)) => Ok(()),
        (ExpectedHeader::Holding(text), Some(value))
            if value.to_ascii_lowercase().contains(text) =>
        {
            Ok(())
        }
        (ExpectedHeader::Absent, Some(value)) => {
            Err(format!("expected no header {name}, found {value}"))
        }
        (ExpectedHeader::Any, None) => Err(format!("expected a header {name}, found none")),
        (ExpectedHeader::Holding(text), Some(value)) => {
            Err(format!("expected the header {name} to hold {text}, found {value}"))
        }
        (ExpectedHeader::Holding(text), None) => {
            Err(format!("expected the header {name} to hold {text}, found none"))
        }
    }
}

fn f_due(finding: &Finding, expected: &ExpectedFrame) -> Finding {
    let wanted = match expected {
        ExpectedFrame::Pong(payload) => format!("a pong with {:?}", shortened(payload)),
        ExpectedFrame::Close(codes) if codes.is_empty() => "a close frame".to_owned(),
        ExpectedFrame::Close(codes) => format!("a close frame with code {codes:?}"),
    };
    Finding::new(finding.fault, format!("{}\nexpected {wanted}", finding.reason))
}
