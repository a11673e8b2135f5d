//! Documents that the session opens, changes, saves and closes.

use antiphon_lsp::documents::PositionEncoding;
use antiphon_lsp::types::{Position, Range, TextEdit};
use antiphon_lsp::{ApplyError, OpenError, ServerSession};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::recorder::start;

const URI: &str = "file:///a.txt";

fn range(start: (u32, u32), end: (u32, u32)) -> Range {
    Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1))
}

fn everything() -> Value {
    json!({"openClose": true, "change": 2, "save": {"includeText": true}})
}

#[tokio::test]
async fn a_document_is_opened_changed_saved_and_closed() {
    let (session, mut told) = start(ServerSession::builder(), everything()).await;
    let mut document = session.open(URI, "plaintext", "one\ntwo\n").await.unwrap();
    let item = json!({"uri": URI, "languageId": "plaintext", "version": 1, "text": "one\ntwo\n"});
    assert_eq!(told.next("didOpen").await, json!({ "textDocument": item }));

    document.edit(range((1, 0), (1, 3)), "2").await.unwrap();
    let change = json!({"range": range((1, 0), (1, 3)), "text": "2"});
    let params = json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [change]});
    assert_eq!(told.next("didChange").await, json!({"params": params, "text": "one\n2\n"}));

    document.replace("one\n2 and more\n").await.unwrap();
    let changed = told.next("didChange").await;
    let change = json!([{"range": range((1, 1), (1, 1)), "text": " and more"}]);
    assert_eq!(changed["params"]["contentChanges"], change);
    assert_eq!(changed["params"]["textDocument"]["version"], 3);
    // Nothing has changed, so nothing is sent.
    document.replace("one\n2 and more\n").await.unwrap();
    assert_eq!((document.version(), document.snapshot().as_str()), (3, "one\n2 and more\n"));

    document.save().await.unwrap();
    assert_eq!(told.next("didSave").await["text"], "one\n2 and more\n");
    document.close().await.unwrap();
    assert_eq!(told.next("didClose").await, json!({"textDocument": {"uri": URI}}));
    let again = session.open(URI, "plaintext", "").await.unwrap();
    assert_eq!(told.next("didOpen").await["textDocument"]["version"], 1);
    drop(again);
    told.next("didClose").await;
}

fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> TextEdit {
    TextEdit::new(range(start, end), text.to_owned())
}

#[tokio::test]
async fn edits_are_applied_together_as_if_none_moved_another() {
    for sync in [2, 1] {
        let (session, mut told) = start(ServerSession::builder(), json!(sync)).await;
        let mut document = session.open(URI, "plaintext", "one\ntwo\nthree\n").await.unwrap();
        told.next("didOpen").await;
        let edits = [
            edit((2, 0), (2, 5), "3"),
            edit((0, 0), (0, 0), "a"),
            edit((0, 0), (0, 0), "b"),
            edit((0, 3), (1, 0), ""),
            edit((0, 0), (0, 1), "O"),
        ];
        document.apply(&edits).await.unwrap();
        let changed = told.next("didChange").await;
        assert_eq!((&changed["text"], document.version()), (&json!("abOnetwo\n3\n"), 2));
        assert_eq!(document.snapshot().as_str(), "abOnetwo\n3\n");
        let overlapping = [edit((0, 1), (0, 4), "x"), edit((0, 0), (0, 2), "y")];
        let error = document.apply(&overlapping).await.unwrap_err();
        assert!(matches!(error, ApplyError::Overlap { .. }), "{error:?}");
        assert!(error.to_string().contains("line 1"), "{error}");
        document.apply(&[]).await.unwrap();
        assert_eq!(document.version(), 2);
        session.shutdown().await.unwrap();
        drop(document);
        told.nothing_else();
    }
}

#[tokio::test]
async fn a_document_is_open_once() {
    let (session, mut told) = start(ServerSession::builder(), everything()).await;
    let first = session.open(URI, "plaintext", "").await.unwrap();
    let error = session.open(URI, "plaintext", "").await.unwrap_err();
    assert!(matches!(error, OpenError::AlreadyOpen { .. }), "{error:?}");
    assert!(error.to_string().contains(URI), "{error}");
    let other = session.open("file:///b.txt", "plaintext", "").await.unwrap();
    drop((first, other));
    for name in ["didOpen", "didOpen", "didClose", "didClose"] {
        told.next(name).await;
    }
}

#[tokio::test]
async fn a_server_is_told_what_it_wants_to_know() {
    for (sync, told_names) in [
        (json!(null), vec![]),
        (json!({"openClose": true}), vec!["didOpen", "didClose"]),
        (json!(1), vec!["didOpen", "didChange", "didSave", "didClose"]),
        (
            json!({"openClose": true, "change": 1, "save": true}),
            vec!["didOpen", "didChange", "didSave", "didClose"],
        ),
    ] {
        let (session, mut told) = start(ServerSession::builder(), sync.clone()).await;
        let mut document = session.open(URI, "plaintext", "a").await.unwrap();
        document.edit(range((0, 1), (0, 1)), "b").await.unwrap();
        document.save().await.unwrap();
        assert_eq!((document.version(), document.snapshot().as_str()), (2, "ab"), "{sync}");
        document.close().await.unwrap();
        for name in told_names {
            let params = told.next(name).await;
            match name {
                "didChange" => {
                    assert_eq!(params["params"]["contentChanges"], json!([{"text": "ab"}]));
                }
                "didSave" => assert_eq!(params.get("text"), None),
                _ => {}
            }
        }
        session.shutdown().await.unwrap();
        told.nothing_else();
    }
}

#[tokio::test]
async fn the_documents_of_a_lost_session_fail() {
    let (session, _told) = start(ServerSession::builder(), everything()).await;
    let mut document = session.open(URI, "plaintext", "a").await.unwrap();
    session.shutdown().await.unwrap();
    assert!(document.replace("b").await.is_err());
    // What was not sent has not happened.
    assert_eq!((document.version(), document.snapshot().as_str()), (1, "a"));
    assert!(document.diagnostics().await.is_err());
}

/// Line ends in all mixes, and characters of each length, some with common bytes.
fn text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["\r", "\n", "\r\n", "a", "ä", "ö", "漢", "𐐀", "𐐁"]);
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_server_has_the_text_of_the_session_after_each_change(
        encoding in prop::sample::select(vec![
            PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32,
        ]),
        first in text(),
        texts in vec(text(), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let settings = ServerSession::builder().encodings(&[encoding]);
            let (session, mut told) = start(settings, json!(2)).await;
            let mut document = session.open(URI, "plaintext", first).await.unwrap();
            told.next("didOpen").await;
            for text in texts {
                let version = document.version();
                document.replace(&text).await.unwrap();
                assert_eq!(document.snapshot().as_str(), text);
                if document.version() > version {
                    assert_eq!(told.next("didChange").await["text"], text);
                }
            }
        });
    }
}
