//! Progress: sent before the response, delivered beside it, and never blocks anything.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{CallError, Client, Context, Dialect, Limits, ProgressStyle, Router};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Raw, bound, client, request, wires, within};

/// `work` reports each step; `steps` reports this many steps and returns.
fn router() -> Router {
    Router::new()
        .method("steps", |params: Value, cx: Context| async move {
            let steps = params["steps"].as_u64().unwrap_or(3);
            for step in 0..steps {
                cx.progress(json!({"step": step})).await?;
            }
            Ok(cx.wants_progress())
        })
        .method("any", |params: Value, cx: Context| async move {
            cx.progress(1).await?;
            Ok(params)
        })
}

fn pair(dialect: &Dialect, router: Router) -> (Client, Client) {
    let (ours, theirs) = antiphon::transport::memory::pair();
    let server = Client::builder().dialect(dialect.clone()).handler(router).over(theirs);
    (Client::builder().dialect(dialect.clone()).over(ours), server)
}

#[tokio::test]
async fn progress_is_a_stream_beside_the_result_on_every_wire() {
    for wire in wires() {
        for dialect in [Dialect::lsp(), Dialect::mcp()] {
            let server = bound(wire).await;
            let address = server.endpoint().to_string();
            let serving = tokio::spawn(server.dialect(dialect.clone()).serve(router()));
            let client = client().dialect(dialect).connect(&address).await.unwrap();
            let call = client.call::<bool>("steps", json!({"steps": 5}));
            let (call, progress) = call.with_progress::<Value>();
            let seen = progress.map(|told| told.unwrap()["step"].as_u64().unwrap());
            let (result, seen) =
                within(async { tokio::join!(call, seen.collect::<Vec<_>>()) }).await;
            assert!(result.unwrap(), "{wire}");
            assert_eq!(seen, [0, 1, 2, 3, 4], "{wire}");
            // A caller that does not request progress gets none.
            let quiet: bool = within(client.call("steps", json!({})).into_future()).await.unwrap();
            assert!(!quiet, "{wire}");
            serving.abort();
            let _ = serving.await;
        }
    }
}

#[tokio::test]
async fn progress_is_sent_before_the_response() {
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), router());
    raw.send(&request(1, "steps", r#"{"steps":2,"workDoneToken":"t"}"#)).await;
    for step in 0..2 {
        let expected = json!({
            "jsonrpc": "2.0",
            "method": "$/progress",
            "params": {"token": "t", "value": {"step": step}}
        });
        assert_eq!(raw.next().await, expected);
    }
    assert_eq!(raw.next().await["result"], true);
    // Each call has its own token.
    raw.send(&request(2, "steps", r#"{"steps":2}"#)).await;
    assert_eq!(raw.next().await["result"], false);
}

#[tokio::test]
async fn progress_by_id_works_with_any_params() {
    let dialect = Dialect::plain().progress(ProgressStyle::by_id("at"));
    let (client, _server) = pair(&dialect, router());
    let (call, progress) = client.call::<Value>("any", [1, 2]).with_progress::<u64>();
    let (result, seen) = within(async { tokio::join!(call, progress.collect::<Vec<_>>()) }).await;
    assert_eq!(result.unwrap(), json!([1, 2]));
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn progress_that_is_not_consumed_blocks_nothing() {
    let (client, _server) = pair(&Dialect::lsp(), router());
    let call = client.call::<bool>("steps", json!({"steps": 10_000}));
    let (call, progress) = call.with_progress::<Value>();
    assert!(within(call.into_future()).await.unwrap());
    // The newest values remain.
    let steps: Vec<_> = within(progress.map(|told| told.unwrap()["step"].as_u64()).collect()).await;
    assert!(steps.len() < 100 && steps.last() == Some(&Some(9_999)), "{} steps", steps.len());
}

#[tokio::test]
async fn unsupported_progress_is_an_error() {
    let (client, _server) = pair(&Dialect::plain(), router());
    let (call, _progress) = client.call::<bool>("steps", ()).with_progress::<Value>();
    let refused = within(call.into_future()).await.unwrap_err();
    assert!(refused.to_string().contains("set a dialect"), "{refused}");
    let (client, _server) = pair(&Dialect::lsp(), router());
    let (call, _progress) = client.call::<bool>("steps", [1]).with_progress::<Value>();
    let refused = within(call.into_future()).await.unwrap_err();
    assert!(refused.to_string().contains("by name"), "{refused}");
}

/// The clock is paused and advanced by the test.
#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout_up_to_the_total() {
    let tick = Arc::new(Notify::new());
    let ticks = tick.clone();
    let router = Router::new().method("slow", move |_: Value, cx: Context| {
        let tick = ticks.clone();
        async move {
            loop {
                tick.notified().await;
                cx.progress(1).await?;
            }
            #[allow(unreachable_code, reason = "it says what it gives")]
            Ok(())
        }
    });
    let (client, _server) = pair(&Dialect::lsp(), router);
    let second = Duration::from_secs(1);
    let started = tokio::time::Instant::now();
    let call = client.call::<()>("slow", ()).timeout(10 * second).extend_on_progress(60 * second);
    let call = tokio::spawn(call.into_future());
    for _ in 0..3 {
        tokio::time::sleep(8 * second).await;
        tick.notify_one();
    }
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut(limit) if limit == 10 * second), "{error}");
    assert_eq!(started.elapsed().as_secs(), 34);

    let started = tokio::time::Instant::now();
    let call = client.call::<()>("slow", ()).timeout(10 * second).extend_on_progress(30 * second);
    let call = tokio::spawn(call.into_future());
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(8 * second).await;
            tick.notify_one();
        }
    });
    let error = call.await.unwrap().unwrap_err();
    ticking.abort();
    assert!(matches!(error, CallError::TimedOut(limit) if limit == 30 * second), "{error}");
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn a_watched_token_gets_its_progress_before_a_later_response() {
    let (mut raw, client) = Raw::served_in(Dialect::lsp(), Limits::default(), Router::new());
    let peer = client.peer().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let watch = peer.watch_progress(move |value| tell.send(value.as_str().to_owned()).unwrap());
    let watch = watch.unwrap();
    let panics = peer.watch_progress(|_| panic!("on purpose")).unwrap();
    assert_ne!(watch.token(), panics.token());
    let call = tokio::spawn(client.call::<u8>("ask", ()).into_future());
    let asked = raw.next().await;
    let progress = |token: &str, value: u8| {
        let params = format!(r#"{{"token":{token},"value":{value}}}"#);
        crate::support::notification("$/progress", &params)
    };
    for (token, value) in [(panics.token(), 1), (watch.token(), 2)] {
        raw.send(&progress(token.as_str(), value)).await;
    }
    raw.send(&crate::support::answer(&asked["id"], "3")).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 3);
    assert_eq!(told.try_recv().as_deref(), Ok("2"));
    // A token that is not watched any more is ignored.
    let late = progress(watch.token().as_str(), 4);
    drop(watch);
    raw.send(&late).await;
    let call = tokio::spawn(client.call::<u8>("ask", ()).into_future());
    let asked = raw.next().await;
    raw.send(&crate::support::answer(&asked["id"], "5")).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 5);
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_token_needs_a_dialect_with_progress() {
    let (_raw, client) = Raw::served_in(Dialect::plain(), Limits::default(), Router::new());
    let error = client.peer().unwrap().watch_progress(|_| {}).unwrap_err();
    assert!(matches!(error, CallError::Unsupported(_)), "{error:?}");
}
