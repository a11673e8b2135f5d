//! Decides whether a message that the case does not expect was left behind by an earlier case.
//!
//! Cases share a connection and often an id, so a wrong reply to this case and a late message of an earlier case can
//! look the same. Such a message counts against this case, unless the right reply follows it. Even then the message is
//! only in doubt: [`CaseRun::in_doubt`].

use tokio::time::timeout;

use super::{CaseRun, MAX_UNSOLICITED};
use crate::result::Finding;
use crate::server::connection::ServerEvent;
use crate::server::server_access::{answer_to, is_ours};
use crate::server::stray_message::can_answer;
use crate::transcript::{Order, Pattern};

/// The limit of late replies to earlier cases, and of the size of each.
const MAX_STRAYS: usize = 16;
const MAX_STRAY_BYTES: usize = 64 << 10;

impl CaseRun<'_> {
    /// Sets the message aside if an earlier case may have left it behind. Otherwise it is a finding. `expected` are the
    /// messages that the case waits for; after its last step, there are none.
    pub(super) async fn set_aside(
        &mut self,
        message: Vec<u8>,
        finding: Finding,
        expected: &[&Pattern],
    ) -> Result<(), Finding> {
        let is_kept = self.left_behind.len() + self.in_doubt.len() < MAX_STRAYS
            && message.len() <= MAX_STRAY_BYTES;
        if !is_kept || !self.may_be_left_behind(&message) {
            return Err(finding);
        }
        if !can_answer(&message, self.case) {
            self.left_behind.push(message);
            return Ok(());
        }
        if expected.is_empty() {
            self.in_doubt.push(message);
            return Err(finding);
        }
        if self.case.is_raw() || !self.right_reply_follows(expected).await {
            return Err(finding);
        }
        self.in_doubt.push(message);
        Ok(())
    }

    /// Reports whether an earlier case on this connection can have caused the message.
    fn may_be_left_behind(&self, message: &[u8]) -> bool {
        !self.server_access.is_http() && self.earlier.iter().any(|case| can_answer(message, case))
    }

    /// Reports whether one of the expected messages arrives before the reply to a probe that is sent now. The messages
    /// up to it are read ahead, so the case compares each message in between too.
    async fn right_reply_follows(&mut self, expected: &[&Pattern]) -> bool {
        if self.read_ahead.iter().any(|message| self.is_expected(message, expected)) {
            return true;
        }
        let (call, id) = self.server_access.probe(self.methods);
        let reply_timeout = self.server_access.timing.reply_timeout();
        let follows = async {
            self.connection.send(call.as_bytes()).await;
            for _ in 0..MAX_UNSOLICITED {
                let message = match self.connection.next().await {
                    ServerEvent::Message(message) => message,
                    ServerEvent::Control(8, _) | ServerEvent::End(_) => return false,
                    ServerEvent::Control(..)
                    | ServerEvent::Response(_)
                    | ServerEvent::StreamEnd => continue,
                };
                if answer_to(&message, &id).is_some() {
                    return false;
                }
                if is_ours(&message) {
                    continue;
                }
                self.record_received(&message);
                if self.is_expected(&message, expected) {
                    self.read_ahead.push_back(message);
                    return true;
                }
                if self.is_unsolicited(&message, expected.iter().copied()) {
                    self.server_access.refuse(self.connection, &message).await;
                    continue;
                }
                if self.read_ahead.len() == MAX_STRAYS || message.len() > MAX_STRAY_BYTES {
                    return false;
                }
                self.read_ahead.push_back(message);
            }
            false
        };
        timeout(reply_timeout, follows).await.unwrap_or(false)
    }

    fn is_expected(&self, message: &[u8], expected: &[&Pattern]) -> bool {
        let order = if self.case.facts.is_ordered { Order::Kept } else { Order::Free };
        let message = &*self.normalized(message);
        expected
            .iter()
            .any(|pattern| pattern.matches(message, order, &mut self.bindings.clone()).is_ok())
    }
}
