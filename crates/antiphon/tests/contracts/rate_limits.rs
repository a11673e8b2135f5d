//! Rate limits, metrics, and panics as the outer layers see them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::layer::{Auth, CatchPanic, IncomingCall, Metrics, Quota, RateLimit};
use antiphon::{CallError, Code, Context, ErrorObject, Handler, Limits, Router};

use crate::support::{Holding, Raw, connect, holding, request, serve, wires_and_http, within};

fn echo() -> Router {
    Router::new()
        .method("echo", |(text,): (String,), _: Context| async move { Ok(text) })
        .method("search", |(): (), _: Context| async { Ok(()) })
        .method("fail", |(code,): (i64,), _: Context| async move {
            Err::<(), _>(ErrorObject::new(code, "no"))
        })
}

/// The time to wait, if the call was over the rate limit.
fn retry_after(error: &CallError) -> u64 {
    let CallError::Rpc(error) = error else { panic!("it was not refused: {error}") };
    assert_eq!(error.code, Code::RATE_LIMITED);
    let data: serde_json::Value = error.data.as_ref().unwrap().decode().unwrap();
    data["retryAfterMs"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_entry_of_a_batch_is_charged() {
    let limit =
        RateLimit::new(Quota::per_second(10).burst(4)).method("search", Quota::per_second(1));
    let address = serve("memory:*", Limits::default(), echo().layer(limit)).await;
    let client = connect(&address).await;
    let mut batch = client.batch();
    let echoes: Vec<_> = (0..6).map(|_| batch.call::<String>("echo", ("x",))).collect();
    let searches = [batch.call::<()>("search", ()), batch.call::<()>("search", ())];
    let mut replies = batch.send().await.unwrap();
    let outcomes: Vec<_> = echoes.into_iter().map(|slot| replies.take(slot)).collect();
    assert!(outcomes[..4].iter().all(Result::is_ok));
    assert!(outcomes[4..].iter().all(|o| retry_after(o.as_ref().unwrap_err()) == 100));
    let [first, second] = searches;
    assert!(replies.take(first).is_ok(), "a method of its own quota has a bucket of its own");
    assert_eq!(retry_after(&replies.take(second).unwrap_err()), 1_000);

    let refused = client.call::<String>("echo", ("x",)).await.unwrap_err();
    tokio::time::advance(Duration::from_millis(retry_after(&refused))).await;
    assert!(client.call::<String>("echo", ("x",)).await.is_ok());
    assert!(client.call::<String>("echo", ("x",)).await.is_err());
    let other = connect(&address).await;
    assert!(other.call::<String>("echo", ("x",)).await.is_ok(), "it is another connection");
}

#[tokio::test(start_paused = true)]
async fn an_identity_has_one_bucket_on_all_its_connections() {
    let limit = RateLimit::new(Quota::new(2, Duration::from_secs(60)));
    let auth = Auth::new().bearer("a", "ada").bearer("b", "bob").login("in");
    let address = serve("memory:*", Limits::default(), echo().layer(limit).layer(auth)).await;
    let mut clients = Vec::new();
    for token in ["a", "a", "a", "b"] {
        let client = connect(&address).await;
        client.call::<String>("in", (token,)).await.unwrap();
        clients.push(client);
    }
    let mut accepted = Vec::new();
    for client in &clients {
        accepted.push(client.call::<String>("echo", ("x",)).await.is_ok());
    }
    assert_eq!(accepted, [true, true, false, true]);
}

#[tokio::test]
async fn counts_are_kept_by_method_and_code() {
    for wire in wires_and_http() {
        let router = echo();
        let metrics = Metrics::new(router.names());
        let address = serve(wire, Limits::default(), router.layer(metrics.clone())).await;
        let client = connect(&address).await;
        let mut batch = client.batch();
        let _ = batch.call::<String>("echo", ("hello",));
        let _ = batch.call::<String>("echo", ("hello",));
        let _ = batch.call::<()>("fail", (7,));
        let _ = batch.call::<()>("made up", ());
        batch.notify("search", ());
        within(batch.send()).await.unwrap();
        for code in 0..40 {
            let failed = client.call::<()>("fail", (code,));
            within(failed.into_future()).await.unwrap_err();
        }
        let page = metrics.render();
        for line in [
            r#"antiphon_calls_total{method="echo",kind="request"} 2"#,
            r#"antiphon_calls_total{method="search",kind="notification"} 1"#,
            r#"antiphon_calls_total{method="(other)",kind="request"} 1"#,
            r#"antiphon_call_errors_total{method="(other)",code="-32601"} 1"#,
            r#"antiphon_call_errors_total{method="fail",code="7"} 2"#,
            r#"antiphon_call_errors_total{method="fail",code="(other)"} 8"#,
            r#"antiphon_call_duration_seconds_count{method="echo"} 2"#,
            r#"antiphon_call_duration_seconds_bucket{method="echo",le="+Inf"} 2"#,
            r#"antiphon_calls_in_flight{method="echo"} 0"#,
            r#"antiphon_params_bytes_total{method="echo"} 18"#,
            r#"antiphon_results_bytes_total{method="echo"} 14"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{wire}: {line}\n{page}");
        }
        assert!(!page.contains("made up"), "{wire}");
    }
}

#[tokio::test]
async fn running_calls_are_in_flight_and_abandoned_calls_count_as_cancelled() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let metrics = Metrics::named("mine", router.names());
    let (mut raw, served) = Raw::served(Limits::default(), router.layer(metrics.clone()));
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    assert!(metrics.render().contains("mine_calls_in_flight{method=\"hold\"} 1\n"));
    drop(raw);
    within(served.peer().unwrap().closed()).await;
    within(gone.recv()).await.unwrap();
    let page = metrics.render();
    assert!(page.contains("mine_calls_in_flight{method=\"hold\"} 0\n"), "{page}");
    assert!(page.contains("mine_call_errors_total{method=\"hold\",code=\"-32800\"} 1\n"), "{page}");
}

#[tokio::test]
async fn a_panic_is_an_error_for_the_outer_layers() {
    let router = Router::new()
        .method("now", |(): (), _: Context| -> std::future::Ready<Result<(), ErrorObject>> {
            panic!("at once")
        })
        .method("later", |(): (), _: Context| async {
            tokio::task::yield_now().await;
            if true {
                panic!("a secret");
            }
            Ok(())
        });
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let tell = heard.clone();
    let hook =
        move |method: &str, text: &str| tell.lock().unwrap().push(format!("{method}: {text}"));
    let metrics = Metrics::new(router.names());
    let handler = router.layer(CatchPanic::new().hook(hook)).layer(metrics.clone());
    let (mut raw, _served) = Raw::served(Limits::default(), handler);
    for (id, method) in [(1, "now"), (2, "later")] {
        raw.send(&request(id, method, "[]")).await;
        let answer = raw.next().await;
        assert_eq!(answer["error"]["code"], -32603);
        assert!(!answer.to_string().contains("secret"), "{answer}");
        let line = format!("antiphon_call_errors_total{{method=\"{method}\",code=\"-32603\"}} 1\n");
        assert!(metrics.render().contains(&line));
    }
    assert_eq!(*heard.lock().unwrap(), ["now: at once", "later: a secret"]);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn text_pages_are_served_by_get_beside_the_service() {
    use crate::support::{dial, rest};
    use tokio::io::AsyncWriteExt;

    let server = antiphon::Server::bind("http://127.0.0.1:0/rpc").await.unwrap();
    let server = server.page("/metrics", Metrics::CONTENT_TYPE, || "a 1\n".to_owned());
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(echo()));
    let ask = |line: &'static str, host: &'static str| {
        let address = address.clone();
        async move {
            let mut stream = dial(&address).await;
            let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            String::from_utf8(rest(&mut stream).await).unwrap()
        }
    };
    let page = ask("GET /metrics", "localhost").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("\r\n\r\na 1\n"), "{page}");
    assert!(page.contains("content-type: text/plain; version=0.0.4"), "{page}");
    assert!(ask("HEAD /metrics", "localhost").await.ends_with("\r\n\r\n"));
    assert!(ask("GET /metrics?x", "localhost").await.starts_with("HTTP/1.1 200 "));
    assert!(ask("POST /metrics", "localhost").await.starts_with("HTTP/1.1 404 "));
    assert!(ask("GET /rpc", "localhost").await.starts_with("HTTP/1.1 405 "));
    assert!(ask("GET /metrics", "evil.example").await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test(start_paused = true)]
async fn callers_are_grouped_by_the_key_of_the_application() {
    // The key is the first param, so that one connection has two keys and two connections share one.
    let key =
        |call: &IncomingCall| call.call.params.clone().map(|params| params.as_json().to_string());
    let limit = RateLimit::new(Quota::new(2, Duration::from_secs(60))).key(key);
    let address = serve("memory:*", Limits::default(), echo().layer(limit)).await;
    let (one, other) = (connect(&address).await, connect(&address).await);
    let mut accepted = Vec::new();
    for (client, key) in [(&one, "a"), (&other, "a"), (&one, "a"), (&one, "b"), (&other, "a")] {
        accepted.push(client.call::<String>("echo", (key,)).await.is_ok());
    }
    assert_eq!(accepted, [true, true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn keys_beyond_the_limit_share_a_bucket() {
    let key =
        |call: &IncomingCall| call.call.params.clone().map(|params| params.as_json().to_string());
    let limit = RateLimit::new(Quota::new(1, Duration::from_secs(60))).callers(0).key(key);
    let address = serve("memory:*", Limits::default(), echo().layer(limit)).await;
    let client = connect(&address).await;
    let mut accepted = 0;
    for key in 0..100 {
        let echoed = client.call::<String>("echo", (key.to_string(),)).await;
        accepted += usize::from(echoed.is_ok());
    }
    assert!(accepted <= 16, "there is one shared bucket for each of 16 shards: {accepted}");
}

#[tokio::test]
async fn a_key_that_panics_fails_only_its_call() {
    let limit = RateLimit::new(Quota::per_second(1_000)).key(|call| {
        assert!(call.call.method != *"bad", "the key panics on purpose");
    });
    let router = Router::new().method("good", |(): (), _cx: Context| async { Ok(1) });
    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(limit));
    raw.send(&request(1, "bad", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32603);
    raw.send(&request(2, "good", "[]")).await;
    assert_eq!(raw.next().await["result"], 1);
}
