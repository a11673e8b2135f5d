//! One service that serves several contracts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon::{Client, ErrorObject, Router};
use futures_util::stream::{self, Stream};
use futures_util::{StreamExt as _, TryStreamExt as _};

#[antiphon::rpc(namespace = "counter")]
trait Counter {
    /// Adds to the sum. It runs in place.
    fn add(&self, n: u64) -> Result<u64, ErrorObject>;

    #[notification]
    async fn reset(&self);

    fn doubled(&self, n: u64) -> Result<u64, ErrorObject> {
        Ok(n * 2)
    }

    #[cfg(any())]
    fn absent(&self) -> Result<NoSuchType, ErrorObject>;
}

#[antiphon::rpc(namespace = "reader")]
trait Reader {
    async fn sum(&self) -> Result<u64, ErrorObject>;

    #[subscription]
    async fn sums(&self) -> Result<impl Stream<Item = u64> + Send + 'static, ErrorObject>;

    #[subscription]
    fn ready(&self, n: u64) -> Result<impl Stream<Item = u64> + Send + 'static, ErrorObject>;
}

#[derive(Default)]
struct Sum(AtomicU64);

impl Counter for Sum {
    fn add(&self, n: u64) -> Result<u64, ErrorObject> {
        Ok(self.0.fetch_add(n, Ordering::Relaxed) + n)
    }

    async fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Reader for Sum {
    async fn sum(&self) -> Result<u64, ErrorObject> {
        Ok(self.0.load(Ordering::Relaxed))
    }

    async fn sums(&self) -> Result<impl Stream<Item = u64> + Send + 'static, ErrorObject> {
        Ok(stream::iter([self.0.load(Ordering::Relaxed)]))
    }

    fn ready(&self, n: u64) -> Result<impl Stream<Item = u64> + Send + 'static, ErrorObject> {
        Ok(stream::iter(0..n))
    }
}

fn shared(sum: &Arc<Sum>) -> Router {
    Counter::into_router(sum.clone()).merge(Reader::into_router(sum.clone()))
}

#[tokio::test]
async fn an_arc_serves_several_contracts_with_one_state() {
    let sum = Arc::new(Sum::default());
    let client = Client::in_process(shared(&sum));
    let (counter, reader) = (CounterClient::new(&client), ReaderClient::new(&client));
    assert_eq!(counter.add(40).await.unwrap(), 40);
    assert_eq!(counter.add(2).await.unwrap(), 42);
    assert_eq!(counter.doubled(21).await.unwrap(), 42);
    assert_eq!(reader.sum().await.unwrap(), 42);
    assert_eq!(reader.sums().await.unwrap().next().await.unwrap().unwrap(), 42);
    let ready: Vec<_> = reader.ready(2).await.unwrap().try_collect().await.unwrap();
    assert_eq!(ready, [0, 1]);
    assert_eq!(sum.0.load(Ordering::Relaxed), 42, "the application keeps a handle");
    counter.reset().await.unwrap();
    assert_eq!(reader.sum().await.unwrap(), 0);
}

#[tokio::test]
async fn an_arc_implements_the_contract_itself() {
    fn of_any(counter: impl Counter) -> Router {
        counter.into_router()
    }
    let sum = Arc::new(Sum::default());
    assert_eq!(Counter::add(&sum, 1).unwrap(), 1);
    Counter::reset(&sum).await;
    assert_eq!(Reader::sum(&sum).await.unwrap(), 0);
    let names = |router: Router| {
        let mut names: Vec<_> = router.names().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    let expected = ["counter_add", "counter_doubled", "counter_reset"];
    assert_eq!(names(of_any(sum.clone())), expected);
    assert_eq!(names(of_any(Arc::new(sum))), expected);
    assert_eq!(names(of_any(Sum::default())), expected);
}
