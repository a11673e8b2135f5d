//! The wire over a connection: a child process, TCP, a Unix socket, a WebSocket, or memory.

use std::sync::{Arc, Mutex};

use antiphon::core::{Message, Payload};
use antiphon::{
    BoxFuture, CallError, Cancellation, CancellationToken, Client, ClientBuilder, Context, Dialect,
    Direction, Endpoint, Handler, Id, Invocation, Outcome, Params, RawJson, TappedMessage,
};

use super::error::McpError;
use super::inbox::{Inbox, locked};
use super::wire::{Wire, WireCall};
use crate::types::{Revision, methods};

/// A connection, which may be opened again.
pub(super) struct Duplex {
    state: Mutex<State>,
    /// What opens it again; `None` if that is off, and for a transport of the application.
    target: Option<(ClientBuilder, Endpoint)>,
    /// Cancelled when this side closes the connection, or drops it.
    ended: CancellationToken,
}

enum State {
    /// Only the handshake is sent.
    Opening(Client),
    Open(Client),
    Closed,
}

impl Duplex {
    /// Connects.
    pub(super) async fn connect(
        builder: ClientBuilder,
        endpoint: Endpoint,
        inbox: &Arc<Inbox>,
        reconnects: bool,
    ) -> Result<Self, McpError> {
        let builder = prepared(builder, inbox);
        let client = builder.clone().connect(endpoint.clone()).await?;
        let target = reconnects.then_some((builder, endpoint));
        Ok(Self {
            state: Mutex::new(State::Opening(client)),
            target,
            ended: CancellationToken::new(),
        })
    }

    /// Uses a transport that the application has opened.
    pub(super) fn over(
        builder: ClientBuilder,
        transport: impl antiphon::transport::Transport,
        inbox: &Arc<Inbox>,
    ) -> Self {
        let client = prepared(builder, inbox).over(transport);
        Self {
            state: Mutex::new(State::Opening(client)),
            target: None,
            ended: CancellationToken::new(),
        }
    }

    /// The connection for a message, if its turn has come.
    fn client(&self, method: &str) -> Result<Client, McpError> {
        match &*locked(&self.state) {
            State::Opening(client) if is_handshake(method) => Ok(client.clone()),
            State::Open(client) => Ok(client.clone()),
            State::Opening(_) => Err(McpError::SessionEnded),
            State::Closed => Err(CallError::Closed("the client was closed".into()).into()),
        }
    }

    /// The error of a message. One that was not sent can be sent on the next connection.
    fn failed(&self, method: &str, error: CallError) -> McpError {
        let is_closed = matches!(*locked(&self.state), State::Closed);
        match error {
            CallError::Closed(_) if self.can_reopen() && !is_handshake(method) && !is_closed => {
                McpError::SessionEnded
            }
            other => other.into(),
        }
    }

    fn current(&self) -> Option<Client> {
        match &*locked(&self.state) {
            State::Opening(client) | State::Open(client) => Some(client.clone()),
            State::Closed => None,
        }
    }
}

fn is_handshake(method: &str) -> bool {
    [methods::DISCOVER, methods::INITIALIZE, methods::INITIALIZED].contains(&method)
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

impl Drop for Duplex {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Wire for Duplex {
    fn request(&self, call: WireCall) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let params = Params::from_json(call.params).ok();
            let mut invocation = Invocation::new(&call.method, params);
            invocation.id = Some(Id::from(call.id));
            let client = self.client(&call.method)?;
            if call.method == methods::INITIALIZE {
                // In a task, because dropping the call would cancel it (2025-11-25, cancellation).
                let (closing, ended) = (client.clone(), self.ended.clone());
                let sent = tokio::spawn(async move {
                    let sent = client.caller().send(invocation);
                    let mut sent = std::pin::pin!(sent);
                    tokio::select! {
                        sent = &mut sent => return sent,
                        () = ended.cancelled() => closing.close().await,
                    }
                    sent.await
                });
                let ended = |error: tokio::task::JoinError| McpError::Protocol(error.to_string());
                return Ok(sent.await.map_err(ended)??);
            }
            let sent = client.caller().send(invocation).await;
            sent.map_err(|error| self.failed(&call.method, error))
        })
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(async move {
            let params = params.and_then(|params| Params::from_json(params).ok());
            let posted = self.client(method)?.caller().post(Invocation::new(method, params)).await;
            posted.map_err(|error| self.failed(method, error))
        })
    }

    fn speak(&self, _: Option<Revision>) {}

    fn initialized(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn can_reopen(&self) -> bool {
        self.target.is_some()
    }

    fn reopen(&self) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(async {
            let Some((builder, endpoint)) = self.target.clone() else { return Ok(()) };
            let client = builder.connect(endpoint).await?;
            let mut state = locked(&self.state);
            match *state {
                State::Closed => Err(CallError::Closed("the client was closed".into()).into()),
                _ => {
                    *state = State::Opening(client);
                    Ok(())
                }
            }
        })
    }

    fn ready(&self) {
        let mut state = locked(&self.state);
        if let State::Opening(client) = &*state {
            *state = State::Open(client.clone());
        }
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let peer = self.current().and_then(|client| client.peer());
            if let Some(peer) = peer {
                peer.closed().await;
            }
        })
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        match self.can_reopen() {
            true => Box::pin(self.ended.cancelled()),
            false => self.lost(),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.ended.cancel();
            let state = std::mem::replace(&mut *locked(&self.state), State::Closed);
            if let State::Opening(client) | State::Open(client) = state {
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
