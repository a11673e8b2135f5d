//! The entries of a batch. Each entry is built when it is taken.
//!
//! This module does not run entries. No entry may run before the whole Array is scanned, because a text
//! that is not JSON is one Parse error. Until then only the spans of each entry are kept. Rejected
//! alternative: a list of finished entries, each three times as large, written and moved before it is
//! used.
//!
//! Invariant: entries keep the order of the Array (section 6).

use std::fmt;
use std::vec::IntoIter;

use bytes::Bytes;

use crate::id::Id;
use crate::members::ValueSpan;
use crate::message::{Entry, Intent, Message, Notification, Params, Request, Response};
use crate::method::Method;

/// Iterator over the entries of a batch (section 6), in their order.
///
/// ```
/// use antiphon_core::{Message, Payload, decode};
///
/// let frame = br#"[{"jsonrpc":"2.0","method":"ping","id":1},{"jsonrpc":"2.0","method":"tick"},2]"#;
/// let Payload::Batch(entries) = decode(&frame[..].into(), &Default::default()) else { panic!() };
/// let entries: Vec<_> = entries.collect();
/// assert!(matches!(entries[0], Ok(Message::Request(_))));
/// assert!(matches!(entries[1], Ok(Message::Notification(_))));
/// assert!(entries[2].is_err());
/// ```
#[derive(Clone, Default)]
pub struct Entries {
    frame: Bytes,
    items: IntoIter<ScannedEntry>,
}

/// One scanned entry of a batch.
#[derive(Clone)]
pub(crate) enum ScannedEntry {
    /// A valid Request or Notification.
    Call(ScannedCall),
    /// A valid Response with a result.
    Result { id: ValueSpan, result: ValueSpan },
    /// Everything else: error responses, calls with a trace context, invalid entries.
    Other(Box<Entry>),
}

impl ScannedEntry {
    fn is_request(&self) -> bool {
        match self {
            Self::Call(call) => !call.id.is_none(),
            Self::Result { .. } => false,
            Self::Other(entry) => matches!(**entry, Ok(Message::Request(_))),
        }
    }

    fn is_notification(&self) -> bool {
        match self {
            Self::Call(call) => call.id.is_none(),
            Self::Result { .. } => false,
            Self::Other(entry) => matches!(**entry, Ok(Message::Notification(_))),
        }
    }

    /// Whether it is a valid Response.
    pub(crate) fn is_response(&self) -> bool {
        match self {
            Self::Call(_) => false,
            Self::Result { .. } => true,
            Self::Other(entry) => matches!(**entry, Ok(Message::Response(_))),
        }
    }

    /// Whether it is a Response, valid or not.
    fn is_any_response(&self) -> bool {
        match self {
            Self::Other(entry) => match &**entry {
                Ok(message) => matches!(message, Message::Response(_)),
                Err(invalid) => invalid.intent == Intent::Response,
            },
            item => item.is_response(),
        }
    }
}

/// The spans of a valid Request or Notification.
#[derive(Clone, Copy)]
pub(crate) struct ScannedCall {
    pub(crate) id: ValueSpan,
    pub(crate) method: ValueSpan,
    pub(crate) params: ValueSpan,
    /// The method's name may have an escape.
    pub(crate) escaped: bool,
}

impl ScannedCall {
    #[inline(always)]
    pub(crate) fn to_message(self, frame: &Bytes) -> Message {
        let (method, params) = (self.method(frame), self.params(frame));
        if self.id.is_none() {
            Message::Notification(Notification { method, params, trace: None })
        } else {
            Message::Request(Request { id: Id::at(self.id, frame), method, params, trace: None })
        }
    }

    #[inline(always)]
    pub(crate) fn method(self, frame: &Bytes) -> Method {
        Method::at(self.method, frame, self.escaped)
    }

    #[inline(always)]
    pub(crate) fn params(self, frame: &Bytes) -> Option<Params> {
        (!self.params.is_none()).then(|| Params::of_structured(self.params.json(frame)))
    }
}

/// A Request whose parts are built from the frame on demand.
#[derive(Clone, Copy)]
pub struct LazyRequest<'a> {
    frame: &'a Bytes,
    call: ScannedCall,
}

impl LazyRequest<'_> {
    /// The id, which the Response repeats.
    #[inline(always)]
    pub fn id(self) -> Id {
        Id::at(self.call.id, self.frame)
    }

    /// The method to call.
    #[inline(always)]
    pub fn method(self) -> Method {
        self.call.method(self.frame)
    }

    /// The parameters, if there are any.
    #[inline(always)]
    pub fn params(self) -> Option<Params> {
        self.call.params(self.frame)
    }
}

/// An entry as [`Entries::next_lazy`] returns it.
///
/// ```
/// use antiphon_core::{LazyEntry, Payload, decode};
///
/// let frame = br#"[{"jsonrpc":"2.0","method":"ping","id":1},{"jsonrpc":"2.0","method":"tick"}]"#;
/// let Payload::Batch(mut entries) = decode(&frame[..].into(), &Default::default()) else { panic!() };
/// while let Some(entry) = entries.next_lazy() {
///     match entry {
///         LazyEntry::Request(request) => assert_eq!(request.method(), "ping"),
///         LazyEntry::Other(entry) => assert!(entry.is_ok()),
///     }
/// }
/// ```
pub enum LazyEntry<'a> {
    /// A Request whose parts are not built yet.
    Request(LazyRequest<'a>),
    /// Any other entry.
    Other(Entry),
}

impl Entries {
    pub(crate) fn new(frame: &Bytes, items: Vec<ScannedEntry>) -> Self {
        Self { frame: frame.clone(), items: items.into_iter() }
    }

    /// Takes the next entry without building the parts of a Request.
    #[inline(always)]
    pub fn next_lazy(&mut self) -> Option<LazyEntry<'_>> {
        match self.items.next()? {
            ScannedEntry::Call(call) if !call.id.is_none() => {
                Some(LazyEntry::Request(LazyRequest { frame: &self.frame, call }))
            }
            item => Some(LazyEntry::Other(entry(item, &self.frame))),
        }
    }

    /// Removes and returns the remaining Responses, invalid ones included.
    pub fn take_answers(&mut self) -> Vec<Entry> {
        let items = std::mem::take(&mut self.items);
        let (answers, rest): (Vec<_>, Vec<_>) = items.partition(ScannedEntry::is_any_response);
        self.items = rest.into_iter();
        answers.into_iter().map(|item| entry(item, &self.frame)).collect()
    }

    /// Whether the next entry is a Request.
    #[inline]
    pub fn next_is_request(&self) -> bool {
        self.items.as_slice().first().is_some_and(ScannedEntry::is_request)
    }

    /// Whether there are remaining entries and all of them are valid Requests or Notifications.
    pub fn holds_only_calls(&self) -> bool {
        let items = self.items.as_slice();
        !items.is_empty() && items.iter().all(|item| item.is_request() || item.is_notification())
    }

    /// Whether a Notification is among the remaining entries.
    pub fn holds_notifications(&self) -> bool {
        self.items.as_slice().iter().any(ScannedEntry::is_notification)
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let items = entries.into_iter().map(|entry| ScannedEntry::Other(Box::new(entry)));
        Self::new(&Bytes::new(), items.collect())
    }
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.items.next().map(|item| entry(item, &self.frame))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl ExactSizeIterator for Entries {}

fn entry(item: ScannedEntry, frame: &Bytes) -> Entry {
    match item {
        ScannedEntry::Call(call) => Ok(call.to_message(frame)),
        ScannedEntry::Result { id, result } => {
            let outcome = Ok(result.json(frame));
            Ok(Message::Response(Response { id: Id::at(id, frame), outcome }))
        }
        ScannedEntry::Other(entry) => *entry,
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.clone().eq(other.clone())
    }
}

impl Eq for Entries {}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Payload;
    use crate::{Code, Rules, decode};

    fn entries(text: &'static str) -> Entries {
        match decode(&text.into(), &Rules::default()) {
            Payload::Batch(entries) => entries,
            Payload::One(entry) => panic!("not a batch: {entry:?}"),
        }
    }

    const MIXED: &str = r#"[{"jsonrpc":"2.0","method":"ask","params":[1],"id":"a"},
        {"jsonrpc":"2.0","method":"tell"}, 1, {"jsonrpc":"2.0","result":2,"id":7},
        {"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":8},
        {"jsonrpc":"2.0","result":2,"error":3,"id":9}]"#;

    #[test]
    fn a_lazy_request_equals_the_decoded_one() {
        let mut lazy = entries(MIXED);
        assert!(lazy.next_is_request());
        let Some(LazyEntry::Request(request)) = lazy.next_lazy() else { panic!("it is a Request") };
        let (id, method, params) = (request.id(), request.method(), request.params());
        let parts = Request { id, method, params, trace: None };
        assert_eq!(entries(MIXED).next(), Some(Ok(Message::Request(parts))));
        assert!(!lazy.next_is_request());
        let Some(LazyEntry::Other(entry)) = lazy.next_lazy() else { panic!("not a Request") };
        assert!(matches!(entry, Ok(Message::Notification(_))));
        assert_eq!(lazy.len(), 4);
    }

    #[test]
    fn answers_are_taken_out_and_the_rest_keeps_its_order() {
        let mut rest = entries(MIXED);
        assert!(!rest.holds_only_calls());
        let answers = rest.take_answers();
        assert!(matches!(answers[0], Ok(Message::Response(Response { outcome: Ok(_), .. }))));
        assert!(matches!(answers[1], Ok(Message::Response(Response { outcome: Err(_), .. }))));
        assert_eq!(answers[2].as_ref().unwrap_err().intent, Intent::Response);
        assert_eq!(answers.len(), 3);
        assert!(rest.holds_notifications());
        let rest: Vec<_> = rest.collect();
        assert!(matches!(rest[..2], [Ok(Message::Request(_)), Ok(Message::Notification(_))]));
        assert_eq!(rest[2].as_ref().unwrap_err().error.code, Code::INVALID_REQUEST);
    }

    #[test]
    fn collected_entries_are_like_decoded_ones() {
        let decoded = entries(MIXED);
        let collected: Entries = decoded.clone().collect();
        assert_eq!(collected, decoded);
        assert_eq!(collected.next_is_request(), decoded.next_is_request());
        assert_eq!(collected.holds_notifications(), decoded.holds_notifications());
        assert_eq!(collected.holds_only_calls(), decoded.holds_only_calls());
        assert_eq!(collected.clone().take_answers(), decoded.clone().take_answers());
    }
}
