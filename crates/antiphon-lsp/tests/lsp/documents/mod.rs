//! The store of documents: notifications in, texts out.

mod model;
mod text;

use antiphon_lsp::documents::{Document, DocumentError, Documents, PositionEncoding};
use antiphon_lsp::types::{Position, PositionEncodingKind, Range, Uri};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const URI: &str = "file:///a.txt";

fn parsed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn open(documents: &Documents, version: i32, text: &str) -> Result<Document, DocumentError> {
    open_at(documents, URI, version, text)
}

fn open_at(
    documents: &Documents,
    uri: &str,
    version: i32,
    text: &str,
) -> Result<Document, DocumentError> {
    let item = json!({"uri": uri, "languageId": "plaintext", "version": version, "text": text});
    documents.open(&parsed(json!({ "textDocument": item })))
}

/// `changes` has `[[line, character], [line, character], text]` per change, or just a text.
fn change(documents: &Documents, version: i32, changes: &Value) -> Result<Document, DocumentError> {
    let changes: Vec<_> = changes.as_array().unwrap().iter().map(event).collect();
    let document = json!({"uri": URI, "version": version});
    documents.change(&parsed(json!({"textDocument": document, "contentChanges": changes})))
}

fn event(change: &Value) -> Value {
    let at = |position: &Value| json!({"line": position[0], "character": position[1]});
    match change.as_array() {
        Some(change) => {
            json!({"range": {"start": at(&change[0]), "end": at(&change[1])}, "text": change[2]})
        }
        None => json!({ "text": change }),
    }
}

fn uri() -> Uri {
    Uri(URI.to_owned())
}

fn text_of(documents: &Documents) -> String {
    documents.get(&uri()).unwrap().as_str().to_owned()
}

#[test]
fn changes_of_one_notification_apply_in_order() {
    let documents = Documents::new();
    open(&documents, 1, "one\ntwo\n").unwrap();
    let changes = json!([[[0, 0], [0, 3], "1"], [[0, 1], [1, 0], " "], [[0, 5], [0, 9], "!"]]);
    assert_eq!(change(&documents, 2, &changes).unwrap().as_str(), "1 two!\n");
    let changes = json!(["all new\r\n", [[0, 0], [0, 3], "ALL"]]);
    assert_eq!(change(&documents, 5, &changes).unwrap().as_str(), "ALL new\r\n");
    assert_eq!(documents.get(&uri()).unwrap().version(), 5);
}

/// Nobody knows whether the change was applied before, so the text may be old.
#[test]
fn a_version_that_is_not_newer_closes_the_document() {
    let documents = Documents::new();
    for version in [7, 6, -1] {
        open(&documents, 7, "seven").unwrap();
        let error = change(&documents, version, &json!(["other"])).unwrap_err();
        assert_eq!(error, DocumentError::StaleVersion { uri: uri(), version, current: 7 });
        assert!(documents.get(&uri()).is_none());
        let not_open = DocumentError::NotOpen { uri: uri() };
        assert_eq!(change(&documents, 8, &json!(["eight"])).unwrap_err(), not_open);
    }
    open(&documents, 7, "seven").unwrap();
    assert_eq!(change(&documents, 8, &json!(["eight"])).unwrap().as_str(), "eight");
}

#[test]
fn what_is_not_open_is_an_error() {
    let documents = Documents::new();
    let not_open = DocumentError::NotOpen { uri: uri() };
    let close = || documents.close(&parsed(json!({"textDocument": {"uri": URI}})));
    let save = || documents.save(&parsed(json!({"textDocument": {"uri": URI}})));
    assert_eq!(change(&documents, 1, &json!(["x"])).unwrap_err(), not_open);
    assert_eq!(close().unwrap_err(), not_open);
    assert_eq!(save().unwrap_err(), not_open);
    open(&documents, 1, "text").unwrap();
    assert_eq!(save().unwrap().as_str(), "text");
    assert_eq!(close().unwrap().as_str(), "text");
    assert!(documents.get(&uri()).is_none());
    assert_eq!(change(&documents, 2, &json!(["x"])).unwrap_err(), not_open);
}

#[test]
fn a_document_opened_again_has_the_new_text() {
    let documents = Documents::new();
    open(&documents, 9, "old").unwrap();
    open(&documents, 1, "new").unwrap();
    assert_eq!(text_of(&documents), "new");
    change(&documents, 2, &json!(["newer"])).unwrap();
    assert_eq!(text_of(&documents), "newer");
}

#[test]
fn a_saved_text_is_compared() {
    let documents = Documents::new();
    open(&documents, 1, "text").unwrap();
    let save = |text| documents.save(&parsed(json!({"textDocument": {"uri": URI}, "text": text})));
    assert!(save("text").is_ok());
    assert_eq!(save("other").unwrap_err(), DocumentError::DifferentText { uri: uri() });
    assert_eq!(text_of(&documents), "text");
}

#[test]
fn a_snapshot_keeps_its_version() {
    let documents = Documents::new();
    let first = open(&documents, 1, "first").unwrap();
    change(&documents, 2, &json!(["second"])).unwrap();
    assert_eq!((first.version(), first.as_str()), (1, "first"));
    assert_eq!(text_of(&documents), "second");
}

/// A text that misses a change would be wrong, so the document is gone.
#[test]
fn a_text_over_the_limit_is_closed() {
    let documents = Documents::new().max_bytes(10);
    open(&documents, 1, "12345").unwrap();
    open_at(&documents, "file:///b.txt", 1, "12345").unwrap();
    let too_large = DocumentError::TooLarge { uri: uri(), limit: 10 };
    assert_eq!(change(&documents, 2, &json!(["123456"])).unwrap_err(), too_large);
    assert!(documents.get(&uri()).is_none());
    assert_eq!(open(&documents, 3, "123456").unwrap_err(), too_large);
    assert!(open(&documents, 3, "1234").is_ok());
    assert!(change(&documents, 4, &json!(["12345678901", "1"])).is_err());
    assert!(open(&documents, 5, "12345").is_ok());
    assert_eq!(documents.all().len(), 2);
}

#[test]
fn the_number_of_documents_has_a_limit() {
    let documents = Documents::new().max_documents(1);
    open(&documents, 1, "a").unwrap();
    let second = Uri("file:///b.txt".to_owned());
    let error = open_at(&documents, &second.0, 1, "b").unwrap_err();
    assert_eq!(error, DocumentError::TooManyDocuments { uri: second, limit: 1 });
    assert!(open(&documents, 2, "again").is_ok());
}

#[test]
fn the_first_known_encoding_of_the_client_is_chosen() {
    let rows = [
        (json!({}), PositionEncoding::Utf16),
        (json!({"general": {"positionEncodings": []}}), PositionEncoding::Utf16),
        (json!({"general": {"positionEncodings": ["utf-7"]}}), PositionEncoding::Utf16),
        (json!({"general": {"positionEncodings": ["utf-7", "utf-8"]}}), PositionEncoding::Utf8),
        (json!({"general": {"positionEncodings": ["utf-32", "utf-8"]}}), PositionEncoding::Utf32),
        (json!({"general": {"positionEncodings": ["utf-16", "utf-8"]}}), PositionEncoding::Utf16),
    ];
    for (capabilities, expected) in rows {
        let documents = Documents::new();
        let params = json!({"capabilities": capabilities, "processId": null, "rootUri": null});
        let chosen = documents.capabilities(&parsed(params)).position_encoding;
        assert_eq!(chosen, Some(PositionEncodingKind::from(expected)));
        let document = open(&documents, 1, "𐐀b").unwrap();
        assert_eq!(document.encoding(), expected);
        let character = expected.units_of('𐐀') as u32;
        assert_eq!(document.position(4), Position { line: 0, character });
        assert_eq!(document.offset(Position { line: 0, character }), 4);
    }
}

/// vscode-languageserver-textdocument does the same.
#[test]
fn a_range_that_ends_before_it_starts_is_turned_around() {
    let documents = Documents::new();
    let document = open(&documents, 1, "abc").unwrap();
    let (start, end) = (Position::new(0, 1), Position::new(0, 2));
    #[allow(clippy::reversed_empty_ranges, reason = "this is what is tested")]
    let reversed = document.range(2..1);
    assert_eq!(reversed, Range { start, end });
    assert_eq!(document.byte_range(Range { start: end, end: start }), 1..2);
    assert_eq!(change(&documents, 2, &json!([[[0, 2], [0, 1], "B"]])).unwrap().as_str(), "aBc");
}

#[test]
fn no_text_in_debug() {
    let documents = Documents::new();
    let document = open(&documents, 1, "s3cret").unwrap();
    let shown = format!("{documents:?} {document:?} {:?}", document.text());
    assert!(!shown.contains("s3cret"), "{shown}");
}
