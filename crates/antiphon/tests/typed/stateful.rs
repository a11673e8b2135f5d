//! Closures that share one state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon::{Client, Context, ErrorObject, RawJson, Router, Sink};
use futures_util::TryStreamExt as _;
use futures_util::stream;

type Sum = Arc<AtomicU64>;

#[tokio::test]
async fn every_kind_of_function_gets_the_state() {
    let sum = Sum::default();
    let router = Router::with_state(sum.clone())
        .method("add", |(n,): (u64,), sum: Sum, _cx: Context| async move {
            Ok(sum.fetch_add(n, Ordering::Relaxed) + n)
        })
        .blocking("get", |(): (), sum: Sum, _cx: Context| Ok(sum.load(Ordering::Relaxed)))
        .notification("reset", |(): (), sum: Sum, _cx: Context| async move {
            sum.store(0, Ordering::Relaxed);
        })
        .subscription("sums", |(): (), sum: Sum, _cx: Context| async move {
            Ok(stream::iter([sum.load(Ordering::Relaxed)]))
        })
        .try_subscription("try_sums", |(): (), sum: Sum, _cx: Context| async move {
            Ok(stream::iter([Ok::<_, ErrorObject>(sum.load(Ordering::Relaxed))]))
        })
        .subscription_with("sink", |(): (), sink: Sink, sum: Sum, _cx: Context| async move {
            Ok(sink.send(sum.load(Ordering::Relaxed)).await?)
        });
    let client = Client::in_process(Router::new().nest("sum.", router.into())).nested("sum.");
    assert_eq!(client.call::<u64>("add", [42]).await.unwrap(), 42);
    assert_eq!(client.call::<u64>("get", ()).await.unwrap(), 42);
    for topic in ["sums", "try_sums", "sink"] {
        let sums = client.subscribe::<u64>(topic, ()).await.unwrap();
        assert_eq!(sums.try_collect::<Vec<_>>().await.unwrap(), [42], "{topic}");
    }
    client.notify("reset", ()).await.unwrap();
    assert_eq!(client.call::<u64>("get", ()).await.unwrap(), 0);
    assert_eq!(sum.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn absent_raw_params_are_an_empty_array() {
    let router = Router::new().method("echo", |params: RawJson, _cx: Context| async { Ok(params) });
    let client = Client::in_process(router);
    assert_eq!(client.call::<RawJson>("echo", ()).await.unwrap().as_str(), "[]");
    assert_eq!(client.call::<RawJson>("echo", [1.5]).await.unwrap().as_str(), "[1.5]");
}
