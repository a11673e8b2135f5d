//! Code that uses refused contracts: no error is about the use.

use antiphon::{CallError, Client, Context, ErrorObject, Router};
use futures_core::Stream;
use std::sync::Arc;

#[antiphon::rpc(namspace = "math")]
pub trait Option {
    async fn subtract(&self, a: i64, b: i64) -> Result<i64, ErrorObject>;
    #[notification]
    async fn reset(&self);
}

#[antiphon::rpc(server)]
pub trait Server {
    #[method(nam = "a")]
    fn option(&self, cx: Context) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc(server)]
trait Extended {}

#[antiphon::rpc]
trait Base {
    async fn one(&self) -> Result<i64, ErrorObject>;
    #[method(name = "one")]
    async fn two(&self) -> Result<i64, ErrorObject> {
        self.one().await
    }
}

#[antiphon::rpc(extends(Base))]
trait Sub: Extended {
    async fn three(&self) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
trait Receiver {
    async fn stateless(n: i64) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
trait Plain {
    async fn plain(&self) -> i64;
}

#[antiphon::rpc]
trait Feed {
    #[subscription]
    async fn items(&self) -> Result<impl Stream<Item = i64> + Send, ErrorObject>;
}

#[antiphon::rpc]
trait Twice {
    async fn same(&self) -> Result<i64, ErrorObject>;
    async fn same(&self) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
trait Reserved {
    fn into_router(&self) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
#[derive(Clone)]
struct Service;

impl Option for Service {
    async fn subtract(&self, a: i64, b: i64) -> Result<i64, ErrorObject> {
        Ok(a - b)
    }
    async fn reset(&self) {}
}

impl Server for Service {
    fn option(&self, _cx: Context) -> Result<i64, ErrorObject> {
        Ok(1)
    }
}

impl Extended for Service {}

impl Base for Service {
    async fn one(&self) -> Result<i64, ErrorObject> {
        Ok(1)
    }
}

impl Sub for Service {
    async fn three(&self) -> Result<i64, ErrorObject> {
        Ok(self.two().await? + 1)
    }
}

impl Receiver for Service {
    async fn stateless(n: i64) -> Result<i64, ErrorObject> {
        Ok(n)
    }
}

impl Plain for Service {
    async fn plain(&self) -> i64 {
        1
    }
}

impl Feed for Service {
    async fn items(&self) -> Result<impl Stream<Item = i64> + Send, ErrorObject> {
        Ok(futures_util::stream::iter([1]))
    }
}

impl Twice for Service {
    async fn same(&self) -> Result<i64, ErrorObject> {
        Ok(1)
    }
}

impl Reserved for Service {
    fn into_router(&self) -> Result<i64, ErrorObject> {
        Ok(1)
    }
}

/// A type of the user with the name of a client that is not generated.
struct ServerClient;

#[derive(Clone, Debug)]
struct App {
    math: OptionClient,
    base: std::option::Option<BaseClient>,
}

fn spawned<M: Option>(math: M) {
    tokio::spawn(async move { math.subtract(1, 2).await });
}

async fn calls(client: &Client) -> Result<i64, CallError> {
    let app = App { math: OptionClient::new(client), base: None };
    app.math.reset().await?;
    let mut sum: i64 = app.math.subtract(1, 2).await?;
    let sub = SubClient::new(client);
    sum += sub.three().await? + sub.base().one().await?;
    let mut items = FeedClient::new(client).items().await?;
    while let Some(item) = futures_util::StreamExt::next(&mut items).await {
        sum += item?;
    }
    let names = OptionClient::IDEMPOTENT.len();
    Ok(sum + names as i64 + PlainClient::in_process(Service).plain().await?)
}

fn main() {
    let shared = Arc::new(Service);
    let router: Router = Option::into_router(shared.clone()).merge(Server::into_router(shared));
    let router = router.merge(Sub::into_router(Service)).nest("plain.", Plain::into_router(Service));
    spawned(Service);
    drop((calls(&Client::in_process(router)), ServerClient));
}
