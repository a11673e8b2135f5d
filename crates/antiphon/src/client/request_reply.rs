//! A client over a transport that carries only requests and their replies.

use std::sync::Arc;

use super::{Client, ClientBuilder, OwnedConnection};
use crate::transport::{RequestReply, RequestReplyCaller};

impl ClientBuilder {
    /// Creates a client over a transport that carries one reply per message and has no connection, such
    /// as a message queue. The limits, the timeout, the layers and the tap of this builder apply, and so do the
    /// versions of its dialect. A handler, cancellation, progress and reconnection need a connection and have
    /// no effect.
    ///
    /// The server is a [`Responder`](crate::Responder), or any other that the transport reaches.
    ///
    /// ```
    /// use antiphon::transport::RequestMessage;
    /// use antiphon::{Client, Context, Responder, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), antiphon::CallError> {
    /// let responder = Responder::new(Router::new().method("add", |(a, b): (i64, i64), _cx: Context| {
    ///     async move { Ok(a + b) }
    /// }));
    /// let client = Client::builder().over_request_reply(move |request: RequestMessage| {
    ///     let responder = responder.clone();
    ///     async move { Ok(responder.answer(request.payload).await) }
    /// });
    /// assert_eq!(client.call::<i64>("add", (2, 3)).await?, 5);
    /// # Ok(()) }
    /// ```
    pub fn over_request_reply(mut self, wire: impl RequestReply) -> Client {
        let layers = std::mem::take(&mut self.layers);
        let caller = Arc::new(RequestReplyCaller::new(wire, &self.settings()));
        Client::new(caller, self.timeout, OwnedConnection::None).in_layers(layers)
    }
}
