//! The wire over a connection: a child process, TCP, a Unix socket, a WebSocket, or memory.

use std::sync::{Arc, Mutex};

use antiphon::core::{Message, Payload};
use antiphon::{
    BoxFuture, Cancellation, Client, ClientBuilder, Context, Dialect, Direction, Endpoint, Handler,
    Id, Invocation, Outcome, Params, RawJson, TappedMessage,
};

use super::error::McpError;
use super::inbox::{Inbox, locked};
use super::wire::{Wire, WireCall};
use crate::types::{Revision, methods};

/// A connection.
pub(super) struct Duplex {
    client: Mutex<Option<Client>>,
}

impl Duplex {
    /// Connects.
    pub(super) async fn connect(
        builder: ClientBuilder,
        endpoint: Endpoint,
        inbox: &Arc<Inbox>,
    ) -> Result<Self, McpError> {
        let client = prepared(builder, inbox).connect(endpoint).await?;
        Ok(Self { client: Mutex::new(Some(client)) })
    }

    /// Uses a transport that the application has opened.
    pub(super) fn over(
        builder: ClientBuilder,
        transport: impl antiphon::transport::Transport,
        inbox: &Arc<Inbox>,
    ) -> Self {
        Self { client: Mutex::new(Some(prepared(builder, inbox).over(transport))) }
    }

    fn client(&self) -> Result<Client, McpError> {
        let closed = || antiphon::CallError::Closed("the client was closed".into());
        locked(&self.client).clone().ok_or_else(|| closed().into())
    }
}

/// Adds what every connection needs. Progress has no dialect: the inbox receives it in the same way from all wires.
fn prepared(builder: ClientBuilder, inbox: &Arc<Inbox>) -> ClientBuilder {
    let cancellation = Cancellation::new(methods::CANCELLED, "requestId").silent();
    builder
        .dialect(Dialect::plain().cancellation(cancellation))
        .null_params(true)
        .handler(Receiver(inbox.clone()))
        .tap(ended_subscriptions(inbox.clone()))
}

/// The library takes a cancellation as one of a request of the server. But a server also ends a subscription of this
/// client with one (2026-07-28, cancellation).
fn ended_subscriptions(inbox: Arc<Inbox>) -> impl Fn(&TappedMessage<'_>) + Send + Sync {
    move |message| {
        if message.direction != Direction::Received || !inbox.has_subscriptions() {
            return;
        }
        let name = methods::CANCELLED.as_bytes();
        if !message.bytes.windows(name.len()).any(|window| window == name) {
            return;
        }
        if let Payload::One(Ok(Message::Notification(notification))) = message.decode()
            && notification.method == methods::CANCELLED
            && let Some(params) = notification.params
        {
            inbox.cancelled(params.as_json().as_str());
        }
    }
}

impl Wire for Duplex {
    fn request(&self, call: WireCall) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let params = Params::from_json(call.params).ok();
            let mut invocation = Invocation::new(&call.method, params);
            invocation.id = Some(Id::from(call.id));
            Ok(self.client()?.caller().send(invocation).await?)
        })
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(async move {
            let params = params.and_then(|params| Params::from_json(params).ok());
            Ok(self.client()?.caller().post(Invocation::new(method, params)).await?)
        })
    }

    fn speak(&self, _: Option<Revision>) {}

    fn initialized(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let peer = self.client().ok().and_then(|client| client.peer());
            if let Some(peer) = peer {
                peer.closed().await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let client = locked(&self.client).take();
            if let Some(client) = client {
                client.close().await;
            }
        })
    }
}

/// Passes the messages of the server to the inbox.
struct Receiver(Arc<Inbox>);

impl Handler for Receiver {
    fn call(&self, call: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        let inbox = self.0.clone();
        Box::pin(async move {
            let params = call.params.map(Params::into_json);
            inbox.serve(call.method.as_str(), params.as_ref()).await
        })
    }

    fn notify(&self, call: Invocation, _: Context) -> BoxFuture<'static, ()> {
        let params = call.params.map(Params::into_json);
        self.0.notification(call.method.as_str(), params.as_ref(), None);
        Box::pin(std::future::ready(()))
    }
}
