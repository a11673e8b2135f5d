//! The steps below messages: HTTP responses, WebSocket frames, closed connections, extra connections.

use tokio::time::{Instant, timeout, timeout_at};

use super::next_reply::close_code;
use super::{CaseRun, MAX_UNSOLICITED, ended, flood};
use crate::raw::AddressProtocol;
use crate::result::{DialogueLine, FailureKind, Finding, shortened};
use crate::server::connection::{HttpResponse, ServerEvent};
use crate::server::server_access::is_ours;
use crate::server::timing::PROBE_DELAY;
use crate::transcript::{ExpectedFrame, ExpectedHeader, ExpectedResponse, ExtraConnections};

impl CaseRun<'_> {
    /// Replaces `<host>` and `<path>` with those of the endpoint.
    pub(super) fn fill_address(&self, bytes: &[u8]) -> Vec<u8> {
        let mcp = self.connection.mcp.as_deref();
        let (AddressProtocol::Http { path, host } | AddressProtocol::Ws { path, host }) =
            &self.server_access.target.address.protocol
        else {
            return bytes.to_vec();
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let text = text.replace("<host>", host).replace("<path>", path);
                mcp.map_or_else(|| text.clone(), |mcp| mcp.headers.fill(&text)).into_bytes()
            }
            Err(_) => bytes.to_vec(),
        }
    }

    /// Sends a message by POST, and returns the response.
    pub(super) async fn post(&mut self, message: &[u8]) -> Result<HttpResponse, Finding> {
        let (begun, reply_timeout) = (Instant::now(), self.reply_timeout());
        let posted =
            timeout(reply_timeout, self.server_access.post(self.connection, message)).await;
        let response = posted.map_err(|_| self.silence(begun))?.map_err(ended)?;
        self.dialogue.push(dialogue_line(&response));
        Ok(response)
    }

    /// Returns the next event, within the timeout that began at `begun`.
    pub(super) async fn event(&mut self, begun: Instant) -> Result<ServerEvent, Finding> {
        let deadline = begun + self.reply_timeout();
        let event =
            timeout_at(deadline, self.connection.next()).await.map_err(|_| self.silence(begun))?;
        match &event {
            ServerEvent::Response(response) => self.dialogue.push(dialogue_line(response)),
            ServerEvent::Message(message) => self.record_received(&message.clone()),
            ServerEvent::Control(opcode, payload) => {
                let line = format!("frame {opcode:#04x} {}", shortened(payload));
                self.dialogue.push(DialogueLine::Received(line));
            }
            ServerEvent::StreamEnd | ServerEvent::End(_) => {}
        }
        Ok(event)
    }

    pub(super) async fn response(&mut self, expected: &ExpectedResponse) -> Result<(), Finding> {
        let wrong = |what: String| Finding::new(FailureKind::Wrong, what);
        if let Some(response) = self.posted.take() {
            return head_is(&response, expected).map_err(wrong);
        }
        self.arrived.clear();
        let begun = Instant::now();
        let is_interim = |status: u16| matches!(status, 100 | 102..200);
        let mut passed = 0..MAX_UNSOLICITED;
        let response = loop {
            passed.next().ok_or_else(flood)?;
            match self.event(begun).await? {
                ServerEvent::Response(response)
                    if is_interim(response.status) && !expected.statuses.has(response.status) => {}
                ServerEvent::Response(response) => break response,
                ServerEvent::End(end) => {
                    let Finding { fault, reason } = ended(end);
                    let what = format!("{reason}; expected status {}", expected.statuses.0);
                    return Err(Finding::new(fault, what));
                }
                ServerEvent::Message(_) | ServerEvent::Control(..) | ServerEvent::StreamEnd => {
                    return Err(wrong(
                        "a WebSocket frame arrived instead of an HTTP response".to_owned(),
                    ));
                }
            }
        };
        head_is(&response, expected).map_err(wrong)?;
        self.arrived.extend((!response.body.is_empty()).then_some(response.body));
        self.ignores_body = true;
        Ok(())
    }

    pub(super) async fn control(&mut self, expected: &ExpectedFrame) -> Result<(), Finding> {
        let begun = Instant::now();
        for _ in 0..MAX_UNSOLICITED {
            let event =
                self.event(begun).await.map_err(|finding| expected_frame(&finding, expected))?;
            match (event, expected) {
                (ServerEvent::Message(message), _)
                    if is_ours(&message) || self.is_unsolicited(&message, &[]) => {}
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
                (ServerEvent::End(end), _) => return Err(expected_frame(&ended(end), expected)),
                // A pong may arrive unsolicited (RFC 6455, section 5.5.3).
                (ServerEvent::Control(10, _), _) => {}
                (
                    ServerEvent::Message(_)
                    | ServerEvent::Control(..)
                    | ServerEvent::Response(_)
                    | ServerEvent::StreamEnd,
                    _,
                ) => {
                    let what = "another message or frame arrived";
                    return Err(expected_frame(&Finding::new(FailureKind::Wrong, what), expected));
                }
            }
        }
        Err(flood())
    }

    /// Waits for the end of the connection, and skips every event before it.
    pub(super) async fn closed(&mut self) -> Result<(), Finding> {
        let begun = Instant::now();
        self.is_closed = true;
        for _ in 0..MAX_UNSOLICITED {
            match self.event(begun).await {
                Ok(ServerEvent::End(end)) if end.is_violation => return Err(ended(end)),
                Ok(ServerEvent::End(_) | ServerEvent::Control(8, _)) => return Ok(()),
                Ok(_) => {}
                Err(_) => {
                    let what = "the server must close the connection, but keeps it open";
                    return Err(Finding::new(FailureKind::Wrong, what));
                }
            }
        }
        Err(flood())
    }

    /// Opens connections beside this one. The server may refuse some of them.
    pub(super) async fn open_extra(&mut self, crowd: &ExtraConnections) {
        let bytes = self.bindings.fill(&self.fill_address(&crowd.text.bytes()));
        let verb = if crowd.stays { "open" } else { "open and drop" };
        self.dialogue.push(DialogueLine::Sent(format!(
            "({verb} {} connections) {}",
            crowd.count,
            shortened(&bytes)
        )));
        for _ in 0..crowd.count {
            let Ok(mut connection) = self.server_access.connect(true).await else { continue };
            let _ = timeout(PROBE_DELAY, connection.raw(&bytes)).await;
            if crowd.stays {
                self.extra_connections.push(connection);
            }
        }
    }
}

/// Returns a response as the dialogue shows it.
fn dialogue_line(response: &HttpResponse) -> DialogueLine {
    let kind = response.header("content-type").map(|kind| format!(" {kind}"));
    let text = shortened(&response.body);
    let line = format!("HTTP {}{} {text}", response.status, kind.unwrap_or_default());
    DialogueLine::Received(line.trim_end().to_owned())
}

fn head_is(response: &HttpResponse, expected: &ExpectedResponse) -> Result<(), String> {
    if expected.or_statuses.iter().any(|statuses| statuses.has(response.status)) {
        return Ok(());
    }
    if !expected.statuses.has(response.status) {
        return Err(format!("expected status {}, found {}", expected.statuses.0, response.status));
    }
    expected.headers.iter().try_for_each(|(name, is)| header_is(response, name, is))
}

fn header_is(response: &HttpResponse, name: &str, is: &ExpectedHeader) -> Result<(), String> {
    match (is, response.header(name)) {
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
            Err(format!("expected the header {name} to contain {text}, found {value}"))
        }
        (ExpectedHeader::Holding(text), None) => {
            Err(format!("expected the header {name} to contain {text}, found none"))
        }
    }
}

fn expected_frame(finding: &Finding, expected: &ExpectedFrame) -> Finding {
    let wanted = match expected {
        ExpectedFrame::Pong(payload) => format!("a pong with {:?}", shortened(payload)),
        ExpectedFrame::Close(codes) if codes.is_empty() => "a close frame".to_owned(),
        ExpectedFrame::Close(codes) => format!("a close frame with code {codes:?}"),
    };
    Finding::new(finding.fault, format!("{}\nexpected {wanted}", finding.reason))
}
