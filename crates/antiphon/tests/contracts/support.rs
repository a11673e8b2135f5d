//! Two sides in one process, and a raw end to say anything to one of them.

use std::time::Duration;

use antiphon::transport::memory::{MemoryTransport, pair};
use antiphon::{Client, ClientBuilder, Handler, Limits, Server};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;

/// Ends a test that hangs.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("the test hangs")
}

/// Two clients of each other: both sides of one connection.
pub(crate) fn both(
    left: (Limits, impl Handler),
    right: (Limits, impl Handler),
) -> (Client, Client) {
    let (a, b) = pair();
    let side = |(limits, handler)| Client::builder().limits(limits).handler(handler);
    let right_side = Client::builder().limits(right.0).handler(right.1);
    (ClientBuilder::over(side(left), a), right_side.over(b))
}

/// A served side, spoken to message by message.
pub(crate) struct Raw(pub(crate) MemoryTransport);

impl Raw {
    /// The other end of a connection that this handler serves.
    pub(crate) fn served(limits: Limits, handler: impl Handler) -> (Self, Client) {
        let (ours, theirs) = pair();
        (Self(ours), Client::builder().limits(limits).handler(handler).over(theirs))
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.0.send(Bytes::copy_from_slice(message.as_bytes())).await.unwrap();
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let frame = within(self.0.next()).await.expect("the connection is open").unwrap();
        serde_json::from_slice(&frame).unwrap()
    }
}

/// A server on a free port or name of this endpoint, serving until the test ends.
pub(crate) async fn serve(endpoint: &str, limits: Limits, handler: impl Handler) -> String {
    let server = Server::bind(endpoint).await.unwrap().limits(limits);
    let address = server.endpoints()[0].to_string();
    tokio::spawn(server.serve(handler));
    address
}

pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
