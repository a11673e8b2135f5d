//! Decoding of bytes to messages, and encoding back.

use antiphon_core::{
    Code, Entries, Entry, ErrorObject, Id, Intent, Invalid, LazyEntry, Message, Payload, RawJson,
    Rules, Version, Versions, decode, encode,
};
use bytes::{Bytes, BytesMut};

const DEPTHS: [usize; 8] = [128, 0, 1, 2, 3, 64, 65, usize::MAX];
const ENTRIES: [usize; 4] = [10_000, 0, 1, 3];

/// For every frame and every set of versions: the payload is sound, and every message in it is unchanged after
/// encode and decode, alone and in a batch. What 2.0 reads, the others read too, except a response to `[]`.
pub fn check(data: &[u8]) {
    let Some((rules, frame)) = input(data) else { return };
    let plain = check_with(&frame, &rules);
    for versions in [Versions::V1AndV2, Versions::Bitcoin] {
        let other = check_with(&frame, &Rules { versions, ..rules });
        assert_reads_as_much(&plain, &other);
    }
}

fn check_with(frame: &Bytes, rules: &Rules) -> Payload {
    let payload = decode(frame, rules);
    assert_sound(&payload, rules.versions);
    assert_responses_are_not_answered(&payload);
    match &payload {
        Payload::One(entry) => assert_comes_back(entry, rules.versions),
        Payload::Batch(entries) => {
            assert_ways_of_taking(entries);
            entries.clone().for_each(|entry| assert_comes_back(&entry, rules.versions));
            assert_batch_comes_back(entries.clone().flatten().collect(), rules.versions);
        }
    }
    payload
}

/// A valid 2.0 message is the same message if 1.0 is accepted too.
fn assert_reads_as_much(plain: &Payload, other: &Payload) {
    match (plain, other) {
        (Payload::One(Ok(plain)), Payload::One(other)) => assert_eq!(Ok(plain), other.as_ref()),
        (Payload::One(Err(_)), Payload::One(_)) => {}
        // The limit of a batch depends on its first entry, which may be a response only in 1.0.
        (Payload::One(Err(invalid)), Payload::Batch(batch)) => {
            assert!(batch.len() == 0 || invalid.error.code == Code::BATCH_TOO_LARGE);
        }
        (Payload::Batch(plain), Payload::Batch(other)) => {
            assert_eq!(plain.len(), other.len());
            for (plain, other) in plain.clone().zip(other.clone()) {
                if plain.is_ok() {
                    assert_eq!(plain, other);
                }
            }
        }
        (plain, other) => panic!("{plain:?} became {other:?}"),
    }
}

/// The response to any entry is a response for a peer of each set of versions. Otherwise two peers could answer
/// each other forever.
fn assert_responses_are_not_answered(payload: &Payload) {
    let entries = match payload {
        Payload::One(entry) => Entries::from_iter([entry.clone()]),
        Payload::Batch(entries) => entries.clone(),
    };
    for entry in entries {
        let (id, outcomes) = match entry {
            Ok(Message::Request(request)) => {
                let failed = Err(ErrorObject::method_not_found());
                (request.id, vec![Ok(RawJson::NULL), failed])
            }
            Err(invalid) if invalid.intent == Intent::Request => {
                (invalid.id, vec![Err(invalid.error)])
            }
            _ => continue,
        };
        for outcome in outcomes {
            let mut out = BytesMut::new();
            encode::response(&id, &outcome, &mut out);
            if outcome.is_ok() {
                assert_eq!(out.len(), encode::response_len(&id, &outcome));
            }
            let response = out.freeze();
            for versions in [Versions::V2, Versions::V1AndV2, Versions::Bitcoin] {
                match decode(&response, &Rules { versions, ..lenient() }) {
                    Payload::One(Ok(Message::Response(_))) => {}
                    Payload::One(Err(invalid)) if invalid.intent == Intent::Response => {}
                    other => panic!("{response:?} is no response: {other:?}"),
                }
            }
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
    let rules = Rules { depth, batch_entries, batch_answers, null_params, versions: Versions::V2 };
    Some((rules, Bytes::copy_from_slice(frame)))
}

/// An invalid entry has a reason, and a code that fits its intent.
fn assert_sound(payload: &Payload, versions: Versions) {
    match payload {
        Payload::One(Err(invalid)) => assert_fault(invalid, true, versions),
        Payload::One(Ok(_)) => {}
        Payload::Batch(entries) => {
            assert!(entries.len() > 0 || versions == Versions::Bitcoin, "an empty batch");
            let faults = entries.clone().filter_map(Entry::err);
            faults.for_each(|invalid| assert_fault(&invalid, false, versions));
        }
    }
}

fn assert_fault(invalid: &Invalid, alone: bool, versions: Versions) {
    let of_the_whole = [Code::PARSE_ERROR, Code::BATCH_TOO_LARGE].contains(&invalid.error.code);
    let fits = match invalid.intent {
        Intent::Request if of_the_whole => alone && invalid.id == versions.unreadable_id(),
        // Only Bitcoin nodes have it, and only in batches.
        Intent::Notification => versions == Versions::Bitcoin && !alone,
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
    assert_eq!(entries.holds_only_calls(), !all.is_empty() && all.iter().all(is_call));
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

/// Returns whether encoding keeps the version of a message. A 1.0 call is encoded as a 2.0 call.
fn is_lasting(message: &Message) -> bool {
    match message {
        Message::Request(request) => {
            request.id.version() == Version::V2 && !matches!(request.id, Id::Other(_))
        }
        Message::Notification(_) | Message::Response(_) => true,
    }
}

fn assert_comes_back(entry: &Entry, versions: Versions) {
    let Ok(message) = entry else { return };
    if !is_lasting(message) {
        return;
    }
    let text = encoded(message);
    let rules = Rules { versions, ..lenient() };
    let Payload::One(Ok(back)) = decode(&text, &rules) else { panic!("{text:?} is lost") };
    // Strings are equal by value; this checks that their bytes stay too.
    assert_eq!((&back, encoded(&back)), (message, text));
}

fn assert_batch_comes_back(messages: Vec<Message>, versions: Versions) {
    let messages: Vec<_> = messages.into_iter().filter(is_lasting).collect();
    if messages.is_empty() {
        return;
    }
    let texts: Vec<_> = messages.iter().map(encoded).collect();
    let batch = [b"[", &texts.join(&b" ,\n"[..])[..], b"]"].concat();
    let expected: Entries = messages.into_iter().map(Ok).collect();
    assert_eq!(decode(&batch.into(), &Rules { versions, ..lenient() }), Payload::Batch(expected));
}
