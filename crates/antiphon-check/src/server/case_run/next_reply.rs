//! The expected messages of a case: the next reply, and the probe at its end.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::reply_wait::{ReplyWait, WaitEnd};
use super::{CaseRun, MAX_UNSOLICITED, ended, extra, flood};
use crate::result::{FailureKind, Finding, shortened};
use crate::server::connection::ServerEvent;
use crate::server::server_access::{answer_to, is_ours};
use crate::server::timing::PROBE_DELAY;
use crate::transcript::json::Json;
use crate::transcript::{Order, Pattern};

impl CaseRun<'_> {
    /// Returns the next message that can be a reply. If none arrives, it sends the probe early.
    pub(super) async fn message(&mut self, wanted: &[Pattern]) -> Result<Vec<u8>, Finding> {
        if self.server_access.is_http() {
            if let Some(message) = self.arrived.pop_front() {
                return Ok(message);
            }
            let none = match self.connection.is_streaming() {
                true => "the event stream ended without this message",
                false => "the HTTP response has no body",
            };
            let streamed = self.streamed(wanted).await?;
            return streamed.ok_or_else(|| Finding::new(FailureKind::Silent, none));
        }
        if let Some(message) = self.read_ahead.pop_front() {
            return Ok(message);
        }
        let begun = Instant::now();
        let mut wait = ReplyWait::new(begun, self.reply_timeout(), self.probe_delays());
        let mut skipped = 0;
        loop {
            match timeout_at(wait.deadline(), self.connection.next()).await {
                Ok(ServerEvent::Message(message)) if self.is_early_probe(&message) => {
                    self.early_probe = None;
                    if wait.overtaken() == WaitEnd::Silence {
                        return Err(self.silence(begun));
                    }
                }
                Ok(ServerEvent::Message(message)) if is_ours(&message) => {}
                Ok(ServerEvent::Message(message)) => {
                    self.record_received(&message);
                    if !self.is_unsolicited(&message, wanted) {
                        if wait.is_overtaken() {
                            self.server_access.timing.record_overtaken(begun.elapsed());
                        }
                        return Ok(message);
                    }
                    self.server_access.refuse(self.connection, &message).await;
                    skipped += 1;
                    if skipped > MAX_UNSOLICITED {
                        return Err(flood());
                    }
                }
                Ok(ServerEvent::Control(8, payload)) => return Err(self.close_frame(&payload)),
                Ok(
                    ServerEvent::Control(..) | ServerEvent::Response(_) | ServerEvent::StreamEnd,
                ) => {}
                Ok(ServerEvent::End(end)) => return Err(ended(end)),
                Err(_) if wait.passed() == WaitEnd::Probe => self.probe_early().await?,
                Err(_) => return Err(self.silence(begun)),
            }
        }
    }

    /// Returns the next message of an open event stream; `None` at its end.
    pub(super) async fn streamed(
        &mut self,
        wanted: &[Pattern],
    ) -> Result<Option<Vec<u8>>, Finding> {
        let begun = Instant::now();
        let mut skipped = 0..MAX_UNSOLICITED;
        while self.connection.is_streaming() {
            skipped.next().ok_or_else(flood)?;
            match self.event(begun).await? {
                ServerEvent::Message(message) if !self.is_unsolicited(&message, wanted) => {
                    return Ok(Some(message));
                }
                ServerEvent::End(end) => return Err(ended(end)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the delay before the early probe, and after its reply. A slow method gets the full
    /// timeout: `None`.
    fn probe_delays(&self) -> Option<(Duration, Duration)> {
        let is_plain = !self.case.is_raw()
            && !self.case.is_slow()
            && !self.case.facts.is_without_handshake
            && !self.server_access.is_http();
        self.server_access.timing.probe_delays().filter(|_| is_plain)
    }

    pub(super) fn silence(&self, begun: Instant) -> Finding {
        let time = begun.elapsed().as_secs_f64();
        if self.early_probe.is_none() && self.probe_delays().is_some() {
            self.server_access.timing.record_drop();
            return Finding::new(
                FailureKind::Silent,
                "no reply arrived, though a later call got one",
            );
        }
        self.server_access.timing.record_hang();
        let next = if self.early_probe.is_some() { ", nor to the next call" } else { "" };
        Finding::new(FailureKind::Silent, format!("no reply within {time:.1}s{next}"))
    }

    pub(super) async fn probe_early(&mut self) -> Result<(), Finding> {
        let (call, id) = self.server_access.probe(self.methods);
        self.early_probe = Some(id);
        self.transmit(call.as_bytes()).await
    }

    pub(super) fn is_early_probe(&self, message: &[u8]) -> bool {
        self.early_probe.as_ref().is_some_and(|id| answer_to(message, id).is_some())
    }

    /// Reports whether it is a Request or a Notification of the server that the case does not expect.
    pub(super) fn is_unsolicited<'p>(
        &self,
        message: &[u8],
        wanted: impl IntoIterator<Item = &'p Pattern>,
    ) -> bool {
        let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
        else {
            // The monitor of MCP reports it, once.
            return self.server_access.mcp.is_some();
        };
        let expects = |pattern: &Pattern| {
            pattern.matches(message, Order::Free, &mut self.bindings.clone()).is_ok()
                || pattern.is_call()
        };
        let is_answer = json.member("result").is_some() || json.member("error").is_some();
        json.member("method").is_some() && !is_answer && !wanted.into_iter().any(expects)
    }

    /// Makes an ordinary call. Its reply must be correct, and the next message.
    pub(super) async fn probe(&mut self) -> Result<(), Finding> {
        if let Some(left) = self.arrived.pop_front() {
            return Err(extra(&left));
        }
        let (call, id) = self.server_access.probe(self.methods);
        if self.server_access.is_http() {
            return self.probe_by_post(&call, &id).await;
        }
        self.transmit(call.as_bytes()).await?;
        let begun = Instant::now();
        let deadline = begun + self.server_access.timing.full_timeout();
        for _ in 0..MAX_UNSOLICITED {
            let event = timeout_at(deadline, self.connection.next()).await.map_err(|_| {
                Finding::new(FailureKind::Silent, "the call after this case got no reply")
            })?;
            let message = match event {
                ServerEvent::Message(message) => message,
                ServerEvent::Control(8, payload) => return Err(self.close_frame(&payload)),
                ServerEvent::Control(..) | ServerEvent::Response(_) | ServerEvent::StreamEnd => {
                    continue;
                }
                ServerEvent::End(end) => return Err(ended(end)),
            };
            if answer_to(&message, &id).is_some() {
                self.server_access.timing.record_probe(begun.elapsed());
                return self.probed(&message, &id);
            }
            if is_ours(&message) {
                continue;
            }
            self.record_received(&message);
            if !self.is_unsolicited(&message, &[]) {
                let finding = extra(&message);
                self.set_aside(message, finding, &[]).await?;
                continue;
            }
            self.server_access.refuse(self.connection, &message).await;
        }
        Err(flood())
    }

    async fn probe_by_post(&mut self, call: &str, id: &str) -> Result<(), Finding> {
        if self.connection.is_streaming() {
            // No more responses may follow in the stream. It may stay open.
            if let Ok(Ok(Some(left))) = timeout(PROBE_DELAY, self.streamed(&[])).await {
                return Err(extra(&left));
            }
        }
        let answer = self.post(call.as_bytes()).await?;
        if !answer.is_stream {
            return self.probed(&answer.body, id);
        }
        while let Some(message) = self.streamed(&[]).await? {
            if answer_to(&message, id).is_some() {
                return self.probed(&message, id);
            }
        }
        Err(Finding::new(FailureKind::Silent, "the call after this case got no reply"))
    }

    pub(super) fn probed(&mut self, message: &[u8], id: &str) -> Result<(), Finding> {
        let wrong = |fault| Finding::new(FailureKind::Wrong, format!("after this case: {fault}"));
        match answer_to(message, id) {
            Some(answer) => self.methods.check_probe(&answer).map_err(wrong),
            None => {
                let found = shortened(message);
                Err(wrong(format!("{} now returns {found}", self.methods.method)))
            }
        }
    }

    pub(super) fn close_frame(&mut self, payload: &[u8]) -> Finding {
        let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned();
        let what = format!("the server sent a close frame {} {reason}", close_code(payload));
        Finding::new(FailureKind::Closed, what.trim_end())
    }
}

pub(super) fn close_code(payload: &[u8]) -> u16 {
    match payload {
        [high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => 1005,
    }
}
