//! The notifications of a session as messages.

use bytes::Bytes;
use serde::Serialize;

use crate::server::Change;

pub(super) fn message_of(change: &Change) -> Bytes {
    notification(change.method(), &change.params(None))
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    let notification = Notification { jsonrpc: "2.0", method, params };
    let message = serde_json::to_vec(&notification).unwrap_or_else(|error| {
        tracing::error!(%error, method, "a notification cannot be encoded");
        Vec::new()
    });
    Bytes::from(message)
}
