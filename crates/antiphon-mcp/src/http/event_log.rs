//! The events that a session keeps, so that a client can resume a stream that has broken.
//!
//! A session has one stream of its own, which a GET opens, and one for each POST that answers with events. Each event has
//! the number of its stream and its number in the stream; together they are its id. The log is bounded in events and
//! bytes, and all logs of an endpoint together by a [`LogBudget`]: the oldest events go first.
//!
//! Changes of the server become events only while a client reads the session's own stream. Before, they wait, each kind
//! once, so a session that nobody reads takes no memory for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::RawJson;
use antiphon::transport::http::{EventSender, ServerSentEvent};
use bytes::Bytes;

use super::endpoint_limits::LogBudget;
use super::logged_streams::{LoggedStream, LoggedStreams, STANDALONE, id, parse};
use super::notifications::{message_of, notification};
use crate::server::Change;

/// The largest number of changes that wait for a reader: more than a client can subscribe to.
const MAX_WAITING: usize = 1_100;

pub(super) struct EventLog {
    max_events: usize,
    max_bytes: usize,
    budget: Arc<LogBudget>,
    state: Mutex<LoggedStreams>,
}

/// The event id that a client sends is not one of its session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownEvent;

impl EventLog {
    pub(super) fn new(max_events: usize, max_bytes: usize, budget: Arc<LogBudget>) -> Self {
        Self { max_events, max_bytes, budget, state: Mutex::default() }
    }

    /// Begins the stream of a POST.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.state();
        state.last_stream += 1;
        let stream = state.last_stream;
        state.streams.insert(stream, LoggedStream::default());
        stream
    }

    /// Keeps a message, and returns it as an event. A client that has resumed the stream gets it.
    pub(super) fn append(&self, stream: u64, data: Bytes, is_last: bool) -> ServerSentEvent {
        let mut state = self.state();
        let event = state.append(stream, data, is_last);
        self.shrink(&mut state);
        event
    }

    /// Ends the stream of a POST without a last event.
    pub(super) fn finish(&self, stream: u64) {
        let mut state = self.state();
        let Some(entry) = state.streams.get_mut(&stream) else { return };
        entry.is_finished = true;
        entry.finish_reader();
        state.forget_if_empty(stream);
    }

    /// Tells a change to the client that reads the session's own stream, or to the next one that does.
    pub(super) fn tell(&self, change: &Change) {
        let mut state = self.state();
        let own = state.streams.get(&STANDALONE).and_then(|own| own.reader.as_ref());
        let is_read = own.is_some_and(|reader| !reader.is_closed());
        // A change of a task would keep the task.
        if is_read || matches!(change, Change::Task(_)) {
            state.append(STANDALONE, message_of(change), false);
            self.shrink(&mut state);
        } else if state.waiting.len() < MAX_WAITING && !state.waiting.contains(change) {
            state.waiting.push(change.clone());
        }
    }

    /// Sends a notification to the client that reads the session's own stream, or to the next one that does.
    pub(super) fn notify(&self, method: &str, params: &RawJson) {
        self.send(notification(method, params));
    }

    /// Sends a message to the client that reads the session's own stream, or to the next one that does.
    pub(super) fn send(&self, message: Bytes) {
        self.append(STANDALONE, message, false);
    }

    /// Creates an event without data, whose id is the one before the next event. A client that has nothing else can
    /// resume from it.
    pub(super) fn priming_event(&self, stream: u64) -> ServerSentEvent {
        let last = self.state().streams.get(&stream).map_or(0, |stream| stream.last);
        ServerSentEvent::data("").id(id(stream, last))
    }

    /// Opens the session's own stream for a reader. It gets what no reader could read before. An earlier reader is
    /// replaced: each message goes to one stream only.
    pub(super) fn attach(&self, reader: EventSender) {
        let mut state = self.state();
        let sent = state.streams.entry(STANDALONE).or_default().sent;
        state.replay(STANDALONE, sent, reader);
        self.shrink(&mut state);
    }

    /// Resumes the stream of an event after that event.
    pub(super) fn resume(&self, last_event: &str, reader: EventSender) -> Result<(), UnknownEvent> {
        let (stream, number) = parse(last_event).ok_or(UnknownEvent)?;
        let mut state = self.state();
        if stream == STANDALONE {
            state.streams.entry(STANDALONE).or_default();
        }
        let known = state.streams.get(&stream).ok_or(UnknownEvent)?;
        if number > known.last {
            return Err(UnknownEvent);
        }
        state.replay(stream, number, reader);
        self.shrink(&mut state);
        Ok(())
    }

    /// Whether a client reads a stream that a GET has opened.
    pub(super) fn has_reader(&self) -> bool {
        let state = self.state();
        let mut readers = state.streams.values().filter_map(|stream| stream.reader.as_ref());
        readers.any(|reader| !reader.is_closed())
    }

    /// Ends all streams, and forgets all events.
    pub(super) fn end(&self) {
        let ended = std::mem::take(&mut *self.state());
        self.budget.give_back(ended.bytes);
        let readers = ended.streams.into_values().filter_map(|stream| stream.reader);
        readers.for_each(|reader| reader.finish());
    }

    /// Forgets the oldest events until the log is within its limits.
    fn shrink(&self, state: &mut LoggedStreams) {
        self.budget.take(std::mem::take(&mut state.added));
        while state.events.len() > self.max_events
            || state.bytes > self.max_bytes
            || self.budget.is_exceeded_by(state.bytes)
        {
            let Some(oldest) = state.events.pop_front() else { return };
            state.bytes -= oldest.bytes();
            self.budget.give_back(oldest.bytes());
            if let Some(stream) = state.streams.get_mut(&oldest.stream) {
                stream.kept -= 1;
            }
            state.forget_if_empty(oldest.stream);
        }
    }

    fn state(&self) -> MutexGuard<'_, LoggedStreams> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use antiphon::transport::http::EventStream;
    use http_body_util::BodyExt as _;

    use super::super::logged_streams::EVENT_OVERHEAD;
    use super::*;

    fn data(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn log(max_events: usize, max_bytes: usize) -> EventLog {
        EventLog::new(max_events, max_bytes, Arc::new(LogBudget::new(1 << 20, 1)))
    }

    async fn text(stream: EventStream) -> String {
        let body = stream.collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_broken_stream_is_resumed_after_the_last_event() {
        let log = log(10, 10_000);
        let (stream, other) = (log.open(), log.open());
        log.append(stream, data("one"), false);
        log.append(other, data("other"), false);
        log.append(stream, data("two"), false);
        let (sender, reader) = EventStream::channel(16);
        log.resume("1-1", sender).unwrap();
        log.append(stream, data("three"), true);
        let expected = ": open\n\nid: 1-2\ndata: two\n\nid: 1-3\ndata: three\n\n";
        assert_eq!(text(reader).await, expected);
    }

    #[test]
    fn a_forged_id_is_refused() {
        let log = log(10, 10_000);
        let stream = log.open();
        log.append(stream, data("one"), true);
        for id in ["1-2", "2-0", "x", "", "1", "-1", "1-1-1", "18446744073709551616-1"] {
            let (sender, _reader) = EventStream::channel(16);
            assert_eq!(log.resume(id, sender), Err(UnknownEvent), "{id}");
        }
    }

    #[tokio::test]
    async fn the_log_is_bounded() {
        let log = log(3, 2 * (4 + EVENT_OVERHEAD));
        for _ in 0..100 {
            let stream = log.open();
            log.append(stream, data("abcd"), true);
        }
        assert_eq!(log.state().events.len(), 2);
        assert_eq!(log.state().streams.len(), 2);
    }

    #[tokio::test]
    async fn a_slow_reader_loses_its_stream_and_no_event() {
        let log = log(10, 10_000);
        let (slow, unread) = EventStream::channel(1);
        log.attach(slow);
        for uri in ["a:1", "a:2", "a:3"] {
            log.tell(&Change::Resource(uri.into()));
        }
        assert!(!log.has_reader());
        // The first of them is queued for the slow reader. The next reader is slow too.
        let (slow, other_unread) = EventStream::channel(1);
        log.attach(slow);
        assert!(!log.has_reader());
        let (sender, reader) = EventStream::channel(16);
        log.attach(sender);
        assert!(log.has_reader());
        log.end();
        for (stream, number) in [(unread, 1), (other_unread, 2), (reader, 3)] {
            let text = text(stream).await;
            let uri = format!("a:{number}");
            assert!(text.starts_with(&format!(": open\n\nid: 0-{number}\n")), "{text}");
            assert!(text.contains(&uri) && text.matches("data").count() == 1, "{text}");
        }
    }

    #[tokio::test]
    async fn changes_that_nobody_reads_wait_once() {
        let log = log(10, 10_000);
        for _ in 0..1000 {
            log.tell(&Change::Tools);
            log.tell(&Change::Prompts);
        }
        // One lock at a time: both in one expression would wait for each other.
        assert_eq!(log.state().waiting.len(), 2);
        assert_eq!(log.state().bytes, 0);
        let (sender, reader) = EventStream::channel(16);
        log.attach(sender);
        log.tell(&Change::Tools);
        log.end();
        assert_eq!(text(reader).await.matches("list_changed").count(), 3);
    }

    #[test]
    fn a_stream_without_a_last_event_is_forgotten() {
        let log = log(3, 10_000);
        for _ in 0..100 {
            let stream = log.open();
            log.append(stream, data("one"), false);
            log.finish(stream);
            log.finish(log.open());
        }
        assert_eq!(log.state().streams.len(), 3);
    }

    #[test]
    fn all_logs_together_are_bounded() {
        let event = 36 + EVENT_OVERHEAD;
        let budget = Arc::new(LogBudget::new(10 * event, 5));
        let log = || EventLog::new(100, 1 << 20, budget.clone());
        let append = |log: &EventLog| {
            log.append(STANDALONE, Bytes::from(vec![0; 36]), false);
        };
        let (greedy, other) = (log(), log());
        (0..100).for_each(|_| append(&greedy));
        assert_eq!(greedy.state().events.len(), 10);
        (0..100).for_each(|_| append(&other));
        assert_eq!(other.state().events.len(), 2, "its share");
        append(&greedy);
        assert!(greedy.state().events.len() < 10, "the greedy one gives back");
        drop((greedy, other));
        let next = log();
        (0..100).for_each(|_| append(&next));
        assert_eq!(next.state().events.len(), 10);
    }
}
