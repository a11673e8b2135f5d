//! The event stream of one legacy request: its events have ids, from which a client can resume.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use antiphon::transport::http::{EventSender, ServerSentEvent};
use bytes::Bytes;

use super::http_session::HttpSession;

/// The stream of one POST in the log of its session. It begins with its first event.
#[derive(Clone)]
pub(super) struct ResumableStream(Arc<StreamState>);

struct StreamState {
    session: Arc<HttpSession>,
    number: OnceLock<u64>,
    retry: Duration,
}

impl ResumableStream {
    pub(super) fn new(session: Arc<HttpSession>, retry: Duration) -> Self {
        Self(Arc::new(StreamState { session, number: OnceLock::new(), retry }))
    }

    /// The event of a message, which the log keeps.
    pub(super) fn event(&self, message: Bytes) -> ServerSentEvent {
        // The client of a cancelled call wants no response.
        if is_cancelled(&message) {
            if let Some(number) = self.0.number.get() {
                self.0.session.shared().log.finish(*number);
            }
            return ServerSentEvent::comment("cancelled");
        }
        let is_last = is_reply(&message);
        self.0.session.shared().log.append(self.number(), message, is_last)
    }

    /// Closes the stream after an event from which the client can resume. The request runs on.
    pub(super) fn close(&self, sender: &EventSender) -> bool {
        let event = self.0.session.shared().log.priming_event(self.number()).retry(self.0.retry);
        let is_sent = sender.try_send(&event).is_ok();
        sender.finish();
        is_sent
    }

    fn number(&self) -> u64 {
        *self.0.number.get_or_init(|| self.0.session.shared().log.open())
    }
}

/// Whether a message is the reply of its request, as the library encodes it.
fn is_reply(message: &[u8]) -> bool {
    message.starts_with(br#"{"jsonrpc":"2.0","result""#)
        || message.starts_with(br#"{"jsonrpc":"2.0","error""#)
        || message.starts_with(b"[")
}

/// Whether a message is the reply to a cancelled call.
fn is_cancelled(message: &[u8]) -> bool {
    message.starts_with(br#"{"jsonrpc":"2.0","error":{"code":-32800,"#)
}
