//! Contract 1: every request gets exactly one response, whatever its handler does.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::{CallError, Client, Context, Limits, RawJson, Responder, Router};
use tokio::sync::Barrier;

use crate::support::{Raw, both, request, within};

fn router() -> Router {
    Router::new()
        .method("sync_panic", |(): (), _cx: Context| {
            if true {
                panic!("the secret of the sync handler");
            }
            async { Ok(()) }
        })
        .method("async_panic", |(): (), _cx: Context| async {
            tokio::task::yield_now().await;
            if true {
                panic!("the secret of the async handler");
            }
            Ok(())
        })
        .method("echo", |params: Option<RawJson>, _cx: Context| async move {
            Ok(params.unwrap_or(RawJson::NULL))
        })
        .method("late_echo", |params: RawJson, _cx: Context| async move {
            tokio::task::yield_now().await;
            Ok(params)
        })
        .method("never", |(): (), _cx: Context| async {
            std::future::pending::<()>().await;
            Ok(())
        })
        .method("big", |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) })
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_its_text_is_not_sent() {
    let (mut raw, _served) = Raw::served(Limits::default(), router());
    for (id, method) in [(1, "sync_panic"), (2, "async_panic")] {
        raw.send(&request(id, method, "[]")).await;
        let answer = raw.next().await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], -32603);
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    raw.send(&request(3, "echo", "[7]")).await;
    assert_eq!(raw.next().await["result"], serde_json::json!([7]));
}

#[tokio::test]
async fn a_batch_with_a_panicking_entry_answers_the_others() {
    let (mut raw, _served) = Raw::served(Limits::default(), router());
    let entries = [
        request(1, "echo", "[1]"),
        request(2, "async_panic", "[]"),
        request(3, "late_echo", "[3]"),
    ];
    raw.send(&format!("[{}]", entries.join(","))).await;
    let answers = raw.next().await;
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(answers[0]["result"][0], 1);
    assert_eq!(answers[1]["error"]["code"], -32603);
    assert_eq!(answers[2]["result"][0], 3);
}

#[tokio::test]
async fn a_handler_over_the_request_timeout_is_answered_and_cancelled() {
    let cancelled = Arc::new(Barrier::new(2));
    let seen = cancelled.clone();
    let slow = Router::new().method("slow", move |(): (), cx: Context| {
        let seen = seen.clone();
        async move {
            let token = cx.cancellation().clone();
            tokio::spawn(async move {
                token.cancelled().await;
                seen.wait().await;
            });
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let limits = Limits { request_timeout: Some(Duration::from_millis(20)), ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, slow.merge(router()));
    raw.send(&request(1, "slow", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32012);
    within(cancelled.wait()).await;
    raw.send(&format!("[{},{}]", request(2, "never", "[]"), request(3, "echo", "[3]"))).await;
    let answers = raw.next().await;
    assert_eq!(answers[0]["error"]["code"], -32012);
    assert_eq!(answers[1]["result"][0], 3);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_replaced_by_an_error() {
    let limits = Limits { response_bytes: 1_000, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router());
    raw.send(&request(1, "big", "[5000]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32008);
    // The entries of a batch that fit are kept.
    let batch = [request(2, "big", "[700]"), request(3, "big", "[700]"), request(4, "echo", "[]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    let answers = raw.next().await;
    assert!(answers[0]["result"].is_string());
    assert_eq!(answers[1]["error"]["code"], -32008);
    assert_eq!(answers[2]["id"], 4);
}

#[tokio::test]
async fn ids_come_back_as_they_were_written() {
    use futures_util::{SinkExt, StreamExt};
    let (mut raw, _served) = Raw::served(Limits::default(), router());
    for id in ["1.50", "1e3", "18446744073709551616", "-1", "0", "null", r#""\ud800""#, r#""a\/b""#]
    {
        for method in ["echo", "late_echo", "nowhere"] {
            let message =
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":[],"id":{id}}}"#);
            raw.0.send(message.into()).await.unwrap();
            let answer = within(raw.0.next()).await.unwrap().unwrap();
            let answer = std::str::from_utf8(&answer).unwrap();
            assert!(answer.contains(&format!("\"id\":{id}}}")), "{method} {id}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_fallback_gets_calls_of_unknown_methods() {
    let (upstream, _served) =
        both((Limits::default(), Router::new()), (Limits::default(), router()));
    let proxy = Router::new().fallback(move |call, cx: Context| {
        let upstream = upstream.clone();
        async move { Ok(upstream.forward(call, &cx).await?) }
    });
    let (client, _proxy) = both((Limits::default(), Router::new()), (Limits::default(), proxy));
    let echoed: RawJson = within(client.call("echo", [1.5]).into_future()).await.unwrap();
    assert_eq!(echoed.as_str(), "[1.5]");
    let error = within(client.call::<()>("nowhere", ()).into_future()).await.unwrap_err();
    assert!(matches!(error, CallError::Rpc(error) if error.code.0 == -32601));
}

#[tokio::test]
async fn nested_routers_keep_their_prefix() {
    let inner = Router::new().method("get", |(): (), _cx: Context| async { Ok(1) });
    let outer = Router::new().nest("db.", inner).merge(router());
    let (client, _served): (Client, Client) =
        both((Limits::default(), Router::new()), (Limits::default(), outer));
    assert_eq!(within(client.call::<i64>("db.get", ()).into_future()).await.unwrap(), 1);
    assert!(within(client.call::<i64>("get", ()).into_future()).await.is_err());
}

#[test]
#[should_panic(expected = "is registered twice")]
fn two_methods_with_the_same_name_are_rejected() {
    drop(router().merge(router()));
}

/// A context is reused for the next call, unless its handler has kept a clone.
#[tokio::test]
async fn a_context_that_a_handler_keeps_does_not_change() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeper = kept.clone();
    let router = Router::new()
        .method("keep", move |(): (), cx: Context| {
            keeper.lock().unwrap().push(cx);
            async { Ok(()) }
        })
        .method("id", |(): (), cx: Context| async move { Ok(cx.id().unwrap().to_string()) });
    let responder = Responder::new(router);
    let message = r#"[{"jsonrpc":"2.0","method":"keep","id":1},{"jsonrpc":"2.0","method":"id","id":2},
        {"jsonrpc":"2.0","method":"keep","id":3},{"jsonrpc":"2.0","method":"id","id":4},
        {"jsonrpc":"2.0","method":"keep"}]"#;
    let answer = responder.answer(message).await.unwrap();
    let expected = r#"[{"jsonrpc":"2.0","result":null,"id":1},{"jsonrpc":"2.0","result":"2","id":2},{"jsonrpc":"2.0","result":null,"id":3},{"jsonrpc":"2.0","result":"4","id":4}]"#;
    assert_eq!(answer, expected);
    let ids: Vec<_> = kept.lock().unwrap().iter().map(|cx| cx.id().cloned()).collect();
    assert_eq!(ids, [Some(1.into()), Some(3.into()), None]);
}

#[tokio::test]
async fn a_responder_answers_slow_calls_and_rejects_large_messages() {
    let router = Router::new().method("later", |(): (), _cx: Context| async {
        tokio::task::yield_now().await;
        Ok("later")
    });
    let responder =
        Responder::with_limits(router, Limits { frame_bytes: 100, ..Limits::default() });
    let call = r#"{"jsonrpc":"2.0","method":"later","id":1}"#;
    let answer = responder.answer(call).await.unwrap();
    assert_eq!(answer, r#"{"jsonrpc":"2.0","result":"later","id":1}"#);
    assert_eq!(responder.answer(call.replace(",\"id\":1", "")).await, None);
    let refused = responder.answer(" ".repeat(101)).await.unwrap();
    assert!(refused.starts_with(br#"{"jsonrpc":"2.0","error":{"code":-32007,"#));
}
