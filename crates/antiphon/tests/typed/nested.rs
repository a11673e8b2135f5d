//! Two instances of one contract under two prefixes, and a client for each.

use antiphon::{Client, Context, ErrorObject, Invocation, Router};
use futures_util::TryStreamExt as _;
use futures_util::stream::{self, Stream};
use tokio::sync::mpsc;

#[antiphon::rpc(namespace = "shop", separator = ".")]
trait Shop {
    #[method(idempotent)]
    async fn price(&self, item: String) -> Result<u32, ErrorObject>;

    #[subscription]
    async fn prices(&self) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject>;

    #[notification]
    async fn ring(&self, times: u32);
}

struct Store {
    price: u32,
    rung: mpsc::Sender<(u32, u32)>,
}

impl Shop for Store {
    async fn price(&self, item: String) -> Result<u32, ErrorObject> {
        Ok(self.price + u32::try_from(item.len()).unwrap())
    }

    async fn prices(&self) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject> {
        Ok(stream::iter([self.price, self.price + 1]))
    }

    async fn ring(&self, times: u32) {
        self.rung.send((self.price, times)).await.unwrap();
    }
}

fn street() -> (Client, mpsc::Receiver<(u32, u32)>) {
    let (rung, rings) = mpsc::channel(4);
    let store = |price| Store { price, rung: rung.clone() }.into_router();
    (Client::in_process(Router::new().nest("a.", store(10)).nest("b.", store(20))), rings)
}

#[tokio::test]
async fn each_instance_has_its_client() {
    let (client, mut rings) = street();
    for (prefix, price) in [("a.", 10), ("b.", 20)] {
        let shop = ShopClient::new(client.nested(prefix));
        assert_eq!(shop.price("tea".to_owned()).await.unwrap(), price + 3);
        let prices: Vec<_> = shop.prices().await.unwrap().try_collect().await.unwrap();
        assert_eq!(prices, [price, price + 1]);
        shop.ring(2).await.unwrap();
        assert_eq!(rings.recv().await.unwrap(), (price, 2));
    }
}

#[tokio::test]
async fn a_batch_has_calls_of_both_instances() {
    let (client, mut rings) = street();
    let [a, b] = ["a.", "b."].map(|prefix| ShopClient::new(client.nested(prefix)));
    // A call of a typed client has its full name, in a batch of any client.
    for mut batch in [client.batch(), client.nested("b.").batch()] {
        let (a, b) = (batch.push(a.price(String::new())), batch.push(b.price(String::new())));
        let mut replies = batch.send().await.unwrap();
        assert_eq!((replies.take(a).unwrap(), replies.take(b).unwrap()), (10, 20));
    }
    let mut batch = client.nested("b.").batch();
    let price = batch.call::<u32>("shop.price", ["x"]);
    batch.notify("shop.ring", [1]);
    assert_eq!(batch.send().await.unwrap().take(price).unwrap(), 21);
    assert_eq!(rings.recv().await.unwrap(), (20, 1));
}

#[tokio::test]
async fn every_message_of_a_nested_client_has_the_prefix() {
    let (client, mut rings) = street();
    let outer = Client::in_process(Router::new().fallback(move |call: Invocation, cx: Context| {
        let nested = client.nested("b.");
        async move { Ok(nested.forward(call, &cx).await?) }
    }));
    assert_eq!(outer.call::<u32>("shop.price", [""]).await.unwrap(), 20);
    outer.nested("shop").nested(".").notify("ring", [5]).await.unwrap();
    assert_eq!(rings.recv().await.unwrap(), (20, 5));
    let names: Vec<_> = ShopClient::IDEMPOTENT.iter().map(|name| format!("a.{name}")).collect();
    assert_eq!(names, ["a.shop.price"]);
}
