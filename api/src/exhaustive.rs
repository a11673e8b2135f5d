//! The public types that get no further variant or field, with the reason. Users match them without a
//! wildcard.

/// Whether the type at this path is an exception of the rule.
pub fn is_listed(path: &str) -> bool {
    EXHAUSTIVE.iter().any(|(listed, _)| *listed == path)
}

const EXHAUSTIVE: &[(&str, &str)] = &[
    ("antiphon::BatchEntry", "JSON-RPC has calls and notifications; a caller must send both"),
    ("antiphon::Direction", "a message is sent or received"),
    ("antiphon_core::ErrorObject", "section 5.1 has three members"),
    ("antiphon_core::Id", "section 4 allows three types"),
    ("antiphon_core::Intent", "an invalid entry gets a response, or none"),
    ("antiphon_core::JsonKind", "JSON has six types"),
    ("antiphon_core::LazyEntry", "an entry is a request, or not"),
    ("antiphon_core::Message", "the specification has three messages"),
    ("antiphon_core::Payload", "section 6: a frame is one message or a batch"),
    ("antiphon_core::Answered", "a response must reach its waiter or be reported"),
    ("antiphon_core::framing::websocket::Event", "a transport must handle each frame (RFC 6455)"),
    ("antiphon_core::framing::websocket::Opcode", "RFC 6455 defines six"),
    ("antiphon_core::framing::websocket::Role", "a connection has two ends"),
];
