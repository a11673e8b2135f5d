//! The diagnostics that the server publishes, as a stream and for one document.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Poller, Wake};

use antiphon_lsp::types::PublishDiagnosticsParams;
use antiphon_lsp::{Diagnostics, OpenError, ServerSession};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::recorder::start;
use crate::raw_editor::within;

/// Makes the server publish this.
async fn publish(session: &ServerSession, all: Value) {
    let params = serde_json::from_value(json!({ "settings": all })).unwrap();
    session.server().did_change_configuration(params).await.unwrap();
}

fn of(uri: &str, version: Option<i32>, message: &str) -> Value {
    let start = json!({"line": 0, "character": 0});
    let item = json!({"range": {"start": start, "end": start}, "message": message});
    let version = version.map_or(json!({}), |version| json!({ "version": version }));
    let mut all = json!({"uri": uri, "diagnostics": [item]});
    all.as_object_mut().unwrap().extend(version.as_object().unwrap().clone());
    all
}

fn shown(published: &PublishDiagnosticsParams) -> (&str, Value) {
    (&published.uri.0, json!(published.diagnostics)[0]["message"].clone())
}

async fn next(diagnostics: &mut Diagnostics) -> PublishDiagnosticsParams {
    within(diagnostics.next()).await.unwrap()
}

#[tokio::test]
async fn the_newest_diagnostics_of_each_document_arrive_in_order() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let mut reader = session.diagnostics();
    assert!(reader.next().now_or_never().is_none());
    let one = of("a", None, "1");
    publish(&session, json!([one])).await;
    assert_eq!(shown(&next(&mut reader).await), ("a", json!("1")));
    publish(&session, json!([of("a", None, "2"), of("b", None, "3"), of("a", None, "4")])).await;
    publish(&session, json!([of("end", None, "")])).await;
    // All have arrived before they are read here.
    let mut other = session.diagnostics();
    while shown(&next(&mut other).await).0 != "end" {}
    assert_eq!(shown(&next(&mut reader).await), ("b", json!("3")));
    assert_eq!(shown(&next(&mut reader).await), ("a", json!("4")));
    // A stream that starts late has what is known.
    let mut late = session.diagnostics();
    assert_eq!(shown(&next(&mut late).await), ("b", json!("3")));
    assert_eq!(shown(&next(&mut late).await), ("a", json!("4")));
    assert_eq!(shown(&session.diagnostics_of(&"a".into()).unwrap()), ("a", json!("4")));
    assert!(session.diagnostics_of(&"c".into()).is_none());
}

#[tokio::test]
async fn a_stream_ends_with_the_session() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let reader = session.diagnostics();
    publish(&session, json!([of("a", None, "1")])).await;
    session.shutdown().await.unwrap();
    let all: Vec<_> = within(reader.collect()).await;
    assert_eq!(all.iter().map(shown).collect::<Vec<_>>(), [("a", json!("1"))]);
}

#[tokio::test]
async fn streams_return_none_again_after_their_end() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let (mut diagnostics, mut progress) = (session.diagnostics(), session.progress());
    session.shutdown().await.unwrap();
    for _ in 0..2 {
        assert!(within(diagnostics.next()).await.is_none());
        assert!(within(progress.next()).await.is_none());
    }
}

#[tokio::test]
async fn a_document_waits_for_the_diagnostics_of_its_text() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let mut seen = session.diagnostics();
    let mut document = session.open("a", "plaintext", "").await.unwrap();
    publish(&session, json!([of("a", Some(1), "first")])).await;
    assert_eq!(shown(&within(document.diagnostics()).await.unwrap()).1, "first");
    document.replace("new").await.unwrap();
    assert!(document.diagnostics().now_or_never().is_none());
    for (uri, version, message) in [("a", Some(1), "old"), ("b", Some(2), "other")] {
        publish(&session, json!([of(uri, version, message)])).await;
    }
    while shown(&next(&mut seen).await).1 != "other" {}
    assert!(document.diagnostics().now_or_never().is_none());
    let waiting = document.diagnostics();
    let (found, ()) = within(async {
        tokio::join!(waiting, publish(&session, json!([of("a", Some(2), "new")])))
    })
    .await;
    assert_eq!(shown(&found.unwrap()).1, "new");
    // A server without versions is believed.
    document.replace("newer").await.unwrap();
    publish(&session, json!([of("a", None, "newer")])).await;
    assert_eq!(shown(&within(document.diagnostics()).await.unwrap()).1, "newer");
}

#[tokio::test]
async fn diagnostics_that_were_waited_for_are_those_of_the_opened_document() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let mut seen = session.diagnostics();
    publish(&session, json!([of("a", Some(7), "of an earlier time")])).await;
    next(&mut seen).await;
    let document = session.open("a", "plaintext", "").await.unwrap();
    assert!(document.diagnostics().now_or_never().is_none());
    publish(&session, json!([of("a", Some(1), "now")])).await;
    assert_eq!(shown(&within(document.diagnostics()).await.unwrap()).1, "now");
}

#[tokio::test]
async fn a_server_may_encode_the_uri_in_another_way() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let document = session.open("file:///C%3A/a%2Bb", "plaintext", "").await.unwrap();
    publish(&session, json!([of("file:///c:/a+b", Some(1), "found")])).await;
    let found = within(document.diagnostics()).await.unwrap();
    assert_eq!(shown(&found), ("file:///c:/a+b", json!("found")));
    assert!(document.has_uri(&found.uri) && !document.has_uri(&"file:///c:/a".into()));
    assert_eq!(session.diagnostics_of(document.uri()), Some(found));
    let again = session.open("file:///c:/a+b", "plaintext", "").await.unwrap_err();
    assert!(matches!(again, OpenError::AlreadyOpen { .. }), "{again:?}");
    document.close().await.unwrap();
    drop(session.open("file:///c:/a+b", "plaintext", "").await.unwrap());
}

/// Counts its references.
struct Counted;

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test]
async fn a_dropped_reader_leaves_no_waker() {
    let (session, _told) = start(ServerSession::builder(), json!(2)).await;
    let document = session.open("a", "plaintext", "").await.unwrap();
    let counted = Arc::new(Counted);
    for _ in 0..3 {
        let waker = counted.clone().into();
        let mut poller = Poller::from_waker(&waker);
        assert!(session.diagnostics().poll_next_unpin(&mut poller).is_pending());
        assert!(pin!(document.diagnostics()).poll(&mut poller).is_pending());
        assert!(session.progress().poll_next_unpin(&mut poller).is_pending());
    }
    assert_eq!(Arc::strong_count(&counted), 1);
}
