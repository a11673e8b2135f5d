//! Decoding of bytes to messages, and encoding back.

use antiphon_core::{
    Code, Entries, Entry, Id, Intent, Invalid, LazyEntry, Message, Payload, Rules, decode,
};
use bytes::{Bytes, BytesMut};

const DEPTHS: [usize; 8] = [128, 0, 1, 2, 3, 64, 65, usize::MAX];
const ENTRIES: [usize; 4] = [10_000, 0, 1, 3];

/// Every frame gives a sound payload, and every message in it is unchanged after encode and decode, alone
/// and in a batch.
pub fn check(data: &[u8]) {
    let Some((rules, frame)) = input(data) else { return };
    let payload = decode(&frame, &rules);
    assert_sound(&payload);
    match payload {
        Payload::One(entry) => assert_comes_back(&entry),
        Payload::Batch(entries) => {
            assert_ways_of_taking(&entries);
            entries.clone().for_each(|entry| assert_comes_back(&entry));
            assert_batch_comes_back(entries.flatten().collect());
        }
    }
}

/// The message with the default rules.
pub fn seed(message: &[u8]) -> Vec<u8> {
    [&[0], message].concat()
}

/// The rules that the first byte selects, and the frame behind it.
pub(crate) fn input(data: &[u8]) -> Option<(Rules, Bytes)> {
    let (options, frame) = data.split_first()?;
    let batch_entries = ENTRIES[usize::from(options >> 3 & 3)];
    let batch_answers = batch_entries + usize::from(options >> 6 & 1);
    let (depth, null_params) = (DEPTHS[usize::from(options & 7)], options & 0x20 != 0);
    let rules = Rules { depth, batch_entries, batch_answers, null_params };
    Some((rules, Bytes::copy_from_slice(frame)))
}

/// An invalid entry has a reason, and a code that fits its intent.
fn assert_sound(payload: &Payload) {
    match payload {
        Payload::One(Err(invalid)) => assert_fault(invalid, true),
        Payload::One(Ok(_)) => {}
        Payload::Batch(entries) => {
            assert!(entries.len() > 0, "a batch is never empty");
            let faults = entries.clone().filter_map(Entry::err);
            faults.for_each(|invalid| assert_fault(&invalid, false));
        }
    }
}

fn assert_fault(invalid: &Invalid, alone: bool) {
    let of_the_whole = [Code::PARSE_ERROR, Code::BATCH_TOO_LARGE].contains(&invalid.error.code);
    let fits = match invalid.intent {
        Intent::Request if of_the_whole => alone && invalid.id == Id::Null,
        Intent::Request | Intent::Response => invalid.error.code == Code::INVALID_REQUEST,
    };
    assert!(fits && invalid.error.data.is_some(), "{invalid:?}");
}

/// All ways to take the entries of a batch give the same entries.
fn assert_ways_of_taking(entries: &Entries) {
    let all: Vec<Entry> = entries.clone().collect();
    let mut turns = entries.clone();
    for entry in &all {
        assert_eq!(turns.next_is_request(), matches!(entry, Ok(Message::Request(_))));
        match turns.next_lazy().expect("as many turns as entries") {
            LazyEntry::Request(at) => {
                let Ok(Message::Request(request)) = entry else { panic!("no Request: {entry:?}") };
                assert_eq!((at.id(), at.method()), (request.id.clone(), request.method.clone()));
                assert_eq!(at.params(), request.params);
            }
            LazyEntry::Other(other) => assert_eq!(&other, entry),
        }
    }
    assert!(turns.next_lazy().is_none());
    let mut rest = entries.clone();
    let answers = rest.take_answers();
    let (told, others): (Vec<Entry>, Vec<Entry>) = all.iter().cloned().partition(is_answer);
    assert_eq!((answers, rest.collect::<Vec<_>>()), (told, others));
    let is_call = |entry: &Entry| matches!(entry, Ok(message) if !is_response(message));
    assert_eq!(entries.holds_only_calls(), all.iter().all(is_call));
    let is_note = |entry: &Entry| matches!(entry, Ok(Message::Notification(_)));
    assert_eq!(entries.holds_notifications(), all.iter().any(is_note));
}

fn is_answer(entry: &Entry) -> bool {
    match entry {
        Ok(message) => is_response(message),
        Err(invalid) => invalid.intent == Intent::Response,
    }
}

fn is_response(message: &Message) -> bool {
    matches!(message, Message::Response(_))
}

fn encoded(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

/// An encoded message decodes to itself, under any rules that accepted it.
fn lenient() -> Rules {
    Rules { depth: usize::MAX, batch_entries: usize::MAX, ..Rules::default() }
}

fn assert_comes_back(entry: &Entry) {
    let Ok(message) = entry else { return };
    let text = encoded(message);
    let Payload::One(Ok(back)) = decode(&text, &lenient()) else { panic!("{text:?} is lost") };
    // Strings are equal by value; this checks that their bytes stay too.
    assert_eq!((&back, encoded(&back)), (message, text));
}

fn assert_batch_comes_back(messages: Vec<Message>) {
    if messages.is_empty() {
        return;
    }
    let texts: Vec<_> = messages.iter().map(encoded).collect();
    let batch = [b"[", &texts.join(&b" ,\n"[..])[..], b"]"].concat();
    let expected: Entries = messages.into_iter().map(Ok).collect();
    assert_eq!(decode(&batch.into(), &lenient()), Payload::Batch(expected));
}
