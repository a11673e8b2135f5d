//! Messages of every size keep their bytes: buffers that are reused never mix them.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use antiphon::{Context, Limits, RawJson, Router};
use futures_util::future::join_all;

use crate::support::{connect, elsewhere, serve, wires_and_http, within};

/// Sizes around and above the capacity of small buffers.
pub(crate) const SIZES: [usize; 14] =
    [1, 70_000, 8_100, 16_384, 2, 8_192, 125, 126, 16_383, 200_000, 65_536, 3, 9_000, 20_000];
/// Above the largest buffer that the pool of a thread keeps.
const HUGE: usize = 5 << 19;

/// A String that is unique for this round and size.
pub(crate) fn text(round: usize, size: usize) -> String {
    format!("é{round}{}", "x".repeat(size))
}

#[tokio::test]
async fn large_and_small_messages_keep_their_order_and_their_bytes() {
    let router = Router::new()
        .method("echo", |params: RawJson, _cx: Context| async { Ok(params) })
        .method("later", |params: RawJson, _cx: Context| async {
            elsewhere().await;
            Ok(params)
        });
    for wire in wires_and_http() {
        let address = serve(wire, Limits::default(), router.clone()).await;
        let client = connect(&address).await;
        // The second round reuses the buffers of the first.
        for (round, method) in ["echo", "later", "echo"].into_iter().enumerate() {
            let calls = SIZES.iter().map(|size| {
                let sent = text(round, *size);
                let call = client.call::<(String,)>(method, (sent.clone(),)).into_future();
                async move { assert!(call.await.unwrap().0 == sent, "{size} bytes on {wire}") }
            });
            within(join_all(calls)).await;
        }
        for size in SIZES.into_iter().chain([HUGE]) {
            let sent = text(9, size);
            let echo = client.call::<(String,)>("echo", (sent.clone(),)).into_future();
            assert!(within(echo).await.unwrap().0 == sent, "{size} bytes alone on {wire}");
        }
    }
}

#[tokio::test]
async fn params_that_a_handler_keeps_do_not_change() {
    for wire in wires_and_http() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = kept.clone();
        let router = Router::new().method("keep", move |params: RawJson, _cx: Context| {
            keep.lock().unwrap().push(params);
            async { Ok(()) }
        });
        let address = serve(wire, Limits::default(), router).await;
        let client = connect(&address).await;
        let mut sent = Vec::new();
        for round in 0..2 {
            for size in SIZES {
                let params = (text(round, size),);
                within(client.call::<()>("keep", &params).into_future()).await.unwrap();
                sent.push(serde_json::to_string(&params).unwrap());
            }
        }
        let kept = kept.lock().unwrap();
        assert!(kept.iter().map(RawJson::as_str).eq(&sent), "on {wire}");
    }
}

#[tokio::test]
async fn a_response_may_be_exactly_as_long_as_the_limit() {
    let router = Router::new()
        .method("text", |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) });
    let around = r#"{"jsonrpc":"2.0","result":"","id":1}"#.len();
    let limits = Limits { response_bytes: 100_000, ..Limits::default() };
    for wire in wires_and_http() {
        let address = serve(wire, limits.clone(), router.clone()).await;
        let client = connect(&address).await;
        let most = limits.response_bytes - around;
        let answer = client.call::<String>("text", (most,)).into_future();
        assert_eq!(within(answer).await.unwrap().len(), most, "on {wire}");
        let answer = client.call::<String>("text", (most + 1,)).into_future();
        let error = within(answer).await.unwrap_err();
        assert!(error.to_string().contains("-32008"), "{error} on {wire}");
    }
}
