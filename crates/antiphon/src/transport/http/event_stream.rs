//! Server-sent events: a bounded queue from senders to the body of a response.
//!
//! The queue is limited by events and by bytes. A sender waits while it is full, and aborts the stream
//! when the client reads nothing for the stall timeout.

use std::collections::VecDeque;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::Limits;
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response};
use http_body::{Body, Frame};
use tokio::sync::{Semaphore, TryAcquireError};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::event_queue::{EventPermit, EventQueue, QueueState};
use super::http_body::HttpBody;
use super::server_sent_event::ServerSentEvent;

use crate::layer::BoxError;

/// The content type of an event stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// The shortest period of comments: a period of zero would flood the client.
const MIN_KEEP_ALIVE: Duration = Duration::from_millis(100);
/// The period of comments on an idle stream, unless [`EventStream::keep_alive`] sets another.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The stall timeout, unless [`EventStream::with_stall_timeout`] sets another.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream of server-sent events, as the body of a response.
///
/// It begins with a comment, so that proxies forward the head of the response at once. It ends when
/// every sender is dropped, or when one calls [`EventSender::finish`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use antiphon::transport::http::{EventStream, ServerSentEvent};
///
/// let (sender, stream) = EventStream::channel(16);
/// sender.send(&ServerSentEvent::data("{}")).await.unwrap();
/// let response = stream.into_response();
/// assert_eq!(response.headers()["content-type"], "text/event-stream");
/// # }
/// ```
pub struct EventStream {
    queue: Arc<EventQueue>,
    keep_alive: Duration,
    /// Created by the first poll, inside a runtime.
    timer: Option<Pin<Box<Sleep>>>,
    has_begun: bool,
}

/// The sending half of an [`EventStream`]. Cheap to clone.
pub struct EventSender {
    queue: Arc<EventQueue>,
}

/// The reason why an event was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The client is gone, or the stream has ended.
    #[error("the event stream is closed: the client disconnected, or a sender has finished it")]
    Closed,
    /// The client did not read within the stall timeout. The stream is aborted.
    #[error(
        "the client did not read the event stream within the stall timeout; \
        raise `Limits::stall_timeout` if clients may pause for longer"
    )]
    Stalled,
    /// The queue is full. Only `try_send` fails with it.
    #[error(
        "the queue of the event stream is full; wait with `EventSender::send`, or raise the capacity"
    )]
    Full,
}

impl EventStream {
    /// Creates a stream whose queue holds at most `capacity` events (at least one) and 1 MiB. A larger event
    /// is accepted when the queue is empty.
    ///
    /// The stream is aborted if the client reads nothing for 30 seconds while a sender waits.
    pub fn channel(capacity: usize) -> (EventSender, Self) {
        Self::with_stall_timeout(capacity, STALL_TIMEOUT)
    }

    /// Like [`channel`](Self::channel). The stream is aborted if the client reads nothing for `stall_timeout`
    /// while a sender waits.
    pub fn with_stall_timeout(capacity: usize, stall_timeout: Duration) -> (EventSender, Self) {
        Self::with_limits(capacity, &Limits { stall_timeout, ..Limits::default() })
    }

    /// Like [`channel`](Self::channel), with the stall timeout and the queued bytes of these limits.
    pub(super) fn with_limits(capacity: usize, limits: &Limits) -> (EventSender, Self) {
        let max_bytes = limits.write_queue_bytes.clamp(1, Semaphore::MAX_PERMITS);
        let max_bytes = u32::try_from(max_bytes).unwrap_or(u32::MAX);
        let queue = Arc::new(EventQueue {
            state: Mutex::new(QueueState { senders: 1, ..QueueState::default() }),
            capacity: Semaphore::new(capacity.clamp(1, Semaphore::MAX_PERMITS)),
            byte_capacity: Semaphore::new(max_bytes as usize),
            max_bytes,
            closed: CancellationToken::new(),
            stall_timeout: limits.stall_timeout,
        });
        let sender = EventSender { queue: queue.clone() };
        (sender, Self { queue, keep_alive: KEEP_ALIVE, timer: None, has_begun: false })
    }

    /// Sends a comment after this much idle time, at least 100 ms. The default is 15 seconds.
    #[must_use]
    pub fn keep_alive(mut self, period: Duration) -> Self {
        self.keep_alive = period.max(MIN_KEEP_ALIVE);
        self
    }

    /// Creates a response with status 200 whose body is the stream.
    pub fn into_response(self) -> Response<HttpBody> {
        let mut response = Response::new(HttpBody::from(self));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let unbuffered = HeaderName::from_static("x-accel-buffering");
        headers.insert(unbuffered, HeaderValue::from_static("no"));
        response
    }

    /// Whether an event waits to be read. Otherwise the poller is woken by the next event.
    pub(super) fn poll_has_events(&self, poller: &Poller<'_>) -> bool {
        let mut state = self.queue.state();
        if state.events.is_empty() {
            state.reader = Some(poller.waker().clone());
        }
        !state.events.is_empty()
    }

    /// Whether an event waits to be read.
    pub(super) fn has_events(&self) -> bool {
        !self.queue.state().events.is_empty()
    }

    /// Everything that is queued, in one piece.
    fn poll_events(&self, poller: &Poller<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let mut state = self.queue.state();
        if state.is_aborted {
            return Poll::Ready(Some(Err(EventError::Stalled.into())));
        }
        if state.events.is_empty() {
            if state.is_finished || state.senders == 0 {
                return Poll::Ready(None);
            }
            state.reader = Some(poller.waker().clone());
            return Poll::Pending;
        }
        state.reads += 1;
        let events = std::mem::take(&mut state.events);
        let event_permits = std::mem::take(&mut state.event_permits);
        let byte_permits = std::mem::take(&mut state.byte_permits);
        drop(state);
        self.queue.capacity.add_permits(event_permits);
        self.queue.byte_capacity.add_permits(byte_permits);
        Poll::Ready(Some(Ok(concat(events))))
    }

    fn poll_keep_alive(&mut self, poller: &mut Poller<'_>) -> Poll<()> {
        let period = self.keep_alive;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(period)));
        timer.as_mut().poll(poller)
    }

    fn restart_keep_alive(&mut self) {
        let next = Instant::now().checked_add(self.keep_alive);
        match (&mut self.timer, next) {
            (Some(timer), Some(next)) => timer.as_mut().reset(next),
            // The period overflows the clock: the next poll creates a timer that never fires.
            (timer, _) => *timer = None,
        }
    }
}

fn concat(events: VecDeque<Bytes>) -> Bytes {
    let mut events = events.into_iter();
    match (events.next(), events.len()) {
        (Some(only), 0) => only,
        (first, _) => {
            let mut all = BytesMut::new();
            first.into_iter().chain(events).for_each(|event| all.extend_from_slice(&event));
            all.freeze()
        }
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            let first = Bytes::from_static(b": open\n\n");
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if let Poll::Ready(events) = self.poll_events(poller) {
            self.restart_keep_alive();
            return Poll::Ready(events.map(|events| events.map(Frame::data)));
        }
        if self.poll_keep_alive(poller).is_ready() {
            self.restart_keep_alive();
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b":\n\n")))));
        }
        Poll::Pending
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.queue.abort();
    }
}

impl EventSender {
    /// Sends an event. Waits while the queue is full.
    ///
    /// # Errors
    /// Fails with [`EventError::Closed`] if the client is gone or the stream has ended, and with
    /// [`EventError::Stalled`] if the client reads nothing for the stall timeout while this waits. Then the
    /// stream is aborted.
    ///
    /// # Cancel safety
    /// If the future is dropped, the event was not sent. The sender loses its place in the queue of
    /// waiting senders.
    pub async fn send(&self, event: &ServerSentEvent) -> Result<(), EventError> {
        let event = event.encode();
        self.reserve(event.len()).await?.send(event)
    }

    /// Waits until the queue can take an event of this size.
    ///
    /// Many senders may wait at once, so that one of them waits for longer than the stall timeout while
    /// the client reads. Only a timeout without any read aborts the stream.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<EventPermit<'_>, EventError> {
        let mut permit = pin!(self.queue.acquire(bytes));
        loop {
            let reads = self.queue.state().reads;
            match timeout(self.queue.stall_timeout, permit.as_mut()).await {
                Ok(permit) => return permit.map_err(|_closed| EventError::Closed),
                Err(_elapsed) if self.queue.state().reads != reads => {}
                Err(_elapsed) => {
                    self.queue.abort();
                    return Err(EventError::Stalled);
                }
            }
        }
    }

    /// Sends an event if the queue has room. Does not wait.
    ///
    /// # Errors
    /// Fails with [`EventError::Full`] if the queue is full, and with [`EventError::Closed`] if the client is
    /// gone or the stream has ended.
    pub fn try_send(&self, event: &ServerSentEvent) -> Result<(), EventError> {
        let event = event.encode();
        match self.queue.try_acquire(event.len()) {
            Ok(permit) => permit.send(event),
            Err(TryAcquireError::Closed) => Err(EventError::Closed),
            Err(TryAcquireError::NoPermits) => Err(EventError::Full),
        }
    }

    /// Ends the stream after the events that are queued, even while other senders exist.
    pub fn finish(&self) {
        self.finish_with(None);
    }

    /// Ends the stream with this event, which does not wait for room.
    pub(super) fn finish_with(&self, last: Option<ServerSentEvent>) {
        self.queue.close();
        self.queue.change(|state| {
            if !state.is_aborted && !std::mem::replace(&mut state.is_finished, true) {
                state.events.extend(last.map(|last| last.encode()));
            }
        });
    }

    /// Waits until the client is gone or the stream is aborted. Cancel safe.
    pub async fn closed(&self) {
        self.queue.closed.cancelled().await;
    }

    /// Returns whether the client is gone or the stream is aborted.
    pub fn is_closed(&self) -> bool {
        self.queue.closed.is_cancelled()
    }
}

impl Clone for EventSender {
    fn clone(&self) -> Self {
        self.queue.state().senders += 1;
        Self { queue: self.queue.clone() }
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.queue.change(|state| state.senders -= 1);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for EventSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSender").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn event(data: &'static str) -> ServerSentEvent {
        ServerSentEvent::data(data)
    }

    #[tokio::test]
    async fn events_arrive_in_order_until_the_stream_is_finished() {
        let (sender, stream) = EventStream::channel(2);
        let other = sender.clone();
        sender.send(&event("1")).await.unwrap();
        other.send(&event("2")).await.unwrap();
        assert_eq!(sender.try_send(&event("3")), Err(EventError::Full));
        sender.finish();
        assert_eq!(other.try_send(&event("3")), Err(EventError::Closed));
        let text = stream.collect().await.unwrap().to_bytes();
        assert_eq!(text, ": open\n\ndata: 1\n\ndata: 2\n\n");
    }

    #[tokio::test]
    async fn a_dropped_stream_fails_its_senders() {
        let (sender, stream) = EventStream::channel(1);
        sender.send(&event("1")).await.unwrap();
        let waits = event("2");
        let (sent, ()) = tokio::join!(sender.send(&waits), async { drop(stream) });
        assert_eq!(sent, Err(EventError::Closed));
        sender.closed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_aborts_the_stream() {
        let (sender, mut stream) = EventStream::with_stall_timeout(1, Duration::from_secs(1));
        sender.send(&event("1")).await.unwrap();
        assert_eq!(sender.send(&event("2")).await, Err(EventError::Stalled));
        assert!(stream.frame().await.unwrap().is_ok(), "the first comment");
        assert!(stream.frame().await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_sends_comments() {
        let (_sender, stream) = EventStream::channel(1);
        let mut stream = stream.keep_alive(Duration::from_secs(1));
        for expected in [": open\n\n", ":\n\n", ":\n\n"] {
            let frame = stream.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn the_largest_capacity_takes_a_last_event() {
        let (sender, stream) = EventStream::channel(usize::MAX);
        sender.finish_with(Some(event("reply")));
        let text = stream.collect().await.unwrap().to_bytes();
        assert_eq!(text, ": open\n\ndata: reply\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_every_event() {
        let (sender, mut stream) = EventStream::with_stall_timeout(1, Duration::from_secs(30));
        let tasks: Vec<_> = (0..60)
            .map(|_| {
                let sender = sender.clone();
                tokio::spawn(async move { sender.send(&event("x")).await })
            })
            .collect();
        drop(sender);
        while let Some(frame) = stream.frame().await {
            assert!(frame.is_ok(), "the client never pauses for longer than one second");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn the_queue_is_limited_by_bytes() {
        let limits = Limits { write_queue_bytes: 20, ..Limits::default() };
        let (sender, mut stream) = EventStream::with_limits(16, &limits);
        assert!(stream.frame().await.unwrap().is_ok(), "the first comment");
        for _ in 0..2 {
            let larger = event("more than twenty bytes");
            sender.try_send(&larger).expect("an empty queue takes an event of every size");
            assert_eq!(sender.try_send(&event("1")), Err(EventError::Full));
            assert!(stream.frame().await.unwrap().is_ok());
            // Nine bytes each.
            sender.try_send(&event("1")).unwrap();
            sender.try_send(&event("2")).unwrap();
            assert_eq!(sender.try_send(&event("3")), Err(EventError::Full));
            let waits = event("3");
            let (sent, frame) = tokio::join!(sender.send(&waits), stream.frame());
            sent.unwrap();
            assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), "data: 1\n\ndata: 2\n\n");
            assert!(stream.frame().await.unwrap().is_ok());
        }
    }

    #[tokio::test]
    async fn a_permit_that_is_dropped_returns_to_the_queue() {
        let limits = Limits { write_queue_bytes: 1, ..Limits::default() };
        let (sender, _stream) = EventStream::with_limits(1, &limits);
        drop(sender.reserve(100).await.unwrap());
        sender.try_send(&event("1")).unwrap();
    }
}
