//! A `tracing` subscriber that keeps one field of each event.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone)]
pub(crate) struct EventLog {
    field: &'static str,
    level: Level,
    values: Arc<Mutex<Vec<String>>>,
}

impl EventLog {
    /// Keeps this field, of the events that have it.
    pub(crate) fn of(field: &'static str) -> Self {
        Self { field, level: Level::TRACE, values: Arc::default() }
    }

    /// Keeps the messages of warnings and errors.
    pub(crate) fn of_warnings() -> Self {
        Self { level: Level::WARN, ..Self::of("message") }
    }

    pub(crate) fn values(&self) -> Vec<String> {
        self.values.lock().unwrap().clone()
    }
}

impl Visit for EventLog {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == self.field {
            self.values.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for EventLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
