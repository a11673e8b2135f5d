//! In-process connections: for tests, and to embed a service without a socket.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use super::TransportError;
use crate::connection::Connection;
use crate::peer::Wire;

/// The number of messages in transit before the sender waits.
const CAPACITY: usize = 64;

/// One end of an in-process connection.
///
/// Created by [`pair`].
#[derive(Debug)]
pub struct MemoryTransport {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: PollSender<Bytes>,
}

/// Creates two ends that are connected to each other.
///
/// ```
/// use antiphon::transport::memory::pair;
/// use antiphon::{Client, Context, Router};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), antiphon::CallError> {
/// let (ours, theirs) = pair();
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let _server = Client::builder().handler(router).over(theirs);
/// let client = Client::over(ours);
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// # Ok(()) }
/// ```
pub fn pair() -> (MemoryTransport, MemoryTransport) {
    let (to_left, at_left) = mpsc::channel(CAPACITY);
    let (to_right, at_right) = mpsc::channel(CAPACITY);
    let end =
        |incoming, outgoing| MemoryTransport { incoming, outgoing: PollSender::new(outgoing) };
    (end(at_left, to_right), end(at_right, to_left))
}

pub(crate) fn wire(transport: MemoryTransport) -> Wire<MemoryTransport> {
    Wire::new(transport, Connection::new("memory"))
}

impl Stream for MemoryTransport {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_recv(cx).map(|message| message.map(Ok))
    }
}

fn gone<E>(_: E) -> TransportError {
    TransportError::Broken("the other end of the in-process connection was dropped".to_owned())
}

impl Sink<Bytes> for MemoryTransport {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.outgoing.poll_reserve(cx)).map_err(gone)?;
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        self.outgoing.send_item(message).map_err(gone)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.outgoing.close();
        Poll::Ready(Ok(()))
    }
}

/// The listeners of this process by name, for the endpoint `memory:name`.
static LISTENERS: LazyLock<Mutex<HashMap<String, mpsc::Sender<MemoryTransport>>>> =
    LazyLock::new(Mutex::default);

pub(crate) struct MemoryListener {
    name: String,
    connections: mpsc::Receiver<MemoryTransport>,
}

impl MemoryListener {
    /// Listens on a name; `None` if the name is in use.
    pub(crate) fn bind(name: &str) -> Option<Self> {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.contains_key(name) {
            return None;
        }
        let (sender, connections) = mpsc::channel(CAPACITY);
        listeners.insert(name.to_owned(), sender);
        Some(Self { name: name.to_owned(), connections })
    }

    pub(crate) fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Option<MemoryTransport>> {
        self.connections.poll_recv(cx)
    }
}

impl Drop for MemoryListener {
    fn drop(&mut self) {
        LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// Connects to the listener with this name.
pub(crate) async fn connect(name: &str) -> Option<MemoryTransport> {
    let listener = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    let (ours, theirs) = pair();
    listener?.send(theirs).await.ok()?;
    Some(ours)
}
