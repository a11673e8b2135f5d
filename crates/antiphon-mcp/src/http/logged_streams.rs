//! The streams of one session: their events, and who reads them. The event log limits what they keep.

use std::collections::{HashMap, VecDeque};

use antiphon::transport::http::{EventSender, ServerSentEvent};
use bytes::Bytes;

use super::notifications::message_of;
use crate::server::Change;

/// The stream that a GET opens.
pub(super) const STANDALONE: u64 = 0;
/// The memory of an event besides its data.
pub(super) const EVENT_OVERHEAD: usize = 64;

#[derive(Default)]
pub(super) struct LoggedStreams {
    pub(super) events: VecDeque<LoggedEvent>,
    pub(super) bytes: usize,
    pub(super) streams: HashMap<u64, LoggedStream>,
    pub(super) last_stream: u64,
    /// The bytes of new events that the budget does not know yet.
    pub(super) added: usize,
    /// The changes that no client could read yet.
    pub(super) waiting: Vec<Change>,
}

pub(super) struct LoggedEvent {
    pub(super) stream: u64,
    pub(super) number: u64,
    pub(super) data: Bytes,
}

#[derive(Default)]
pub(super) struct LoggedStream {
    /// The number of the last event.
    pub(super) last: u64,
    /// The number of the last event that a client could read.
    pub(super) sent: u64,
    /// How many of its events the log has.
    pub(super) kept: usize,
    pub(super) is_finished: bool,
    /// The client that has opened or resumed the stream by a GET.
    pub(super) reader: Option<EventSender>,
}

impl LoggedStreams {
    /// Adds an event. The log may then be over its limits.
    pub(super) fn append(&mut self, stream: u64, data: Bytes, is_last: bool) -> ServerSentEvent {
        let entry = self.streams.entry(stream).or_default();
        entry.last += 1;
        entry.kept += 1;
        entry.is_finished |= is_last;
        let number = entry.last;
        let event = event(stream, number, data.clone());
        entry.tell(&event, number);
        if entry.is_finished {
            entry.finish_reader();
        }
        let logged = LoggedEvent { stream, number, data };
        self.bytes += logged.bytes();
        self.added += logged.bytes();
        self.events.push_back(logged);
        event
    }

    /// Forgets a finished stream that has no events any more.
    pub(super) fn forget_if_empty(&mut self, stream: u64) {
        if self.streams.get(&stream).is_some_and(|it| it.is_finished && it.kept == 0) {
            self.streams.remove(&stream);
        }
    }

    /// Sends the events after `number` to a reader, which then gets the next ones too.
    pub(super) fn replay(&mut self, stream: u64, number: u64, reader: EventSender) {
        let Some(entry) = self.streams.get_mut(&stream) else { return };
        if let Some(earlier) = entry.reader.replace(reader) {
            earlier.finish();
        }
        let missed = self.events.iter().filter(|it| it.stream == stream && it.number > number);
        for missed in missed {
            entry.tell(&event(stream, missed.number, missed.data.clone()), missed.number);
        }
        if entry.is_finished {
            entry.finish_reader();
        }
        if stream == STANDALONE {
            for change in std::mem::take(&mut self.waiting) {
                self.append(STANDALONE, message_of(&change), false);
            }
        }
    }
}

impl LoggedEvent {
    /// What the event counts in the limits.
    pub(super) fn bytes(&self) -> usize {
        self.data.len() + EVENT_OVERHEAD
    }
}

impl LoggedStream {
    /// Sends an event to the reader. One that reads too slowly loses its stream, and resumes it from the log.
    pub(super) fn tell(&mut self, event: &ServerSentEvent, number: u64) {
        let Some(reader) = &self.reader else { return };
        match reader.try_send(event) {
            Ok(()) => self.sent = self.sent.max(number),
            Err(_) => self.reader = None,
        }
    }

    pub(super) fn finish_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.finish();
        }
    }
}

pub(super) fn event(stream: u64, number: u64, data: Bytes) -> ServerSentEvent {
    ServerSentEvent::data(data).id(id(stream, number))
}

pub(super) fn id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

pub(super) fn parse(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
