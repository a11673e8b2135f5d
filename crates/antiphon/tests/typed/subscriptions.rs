//! Subscriptions of a contract.

use antiphon::{Context, Overflow, RpcError, Sink, Topic};
use futures_util::stream::{self, BoxStream, Stream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use crate::library::{WIRES, serve};

/// A clock.
#[antiphon::rpc(namespace = "clock", separator = ".")]
pub(crate) trait Clock {
    /// Ticks.
    #[subscription]
    async fn ticks(
        &self,
        first: u64,
        #[param(default = 3)] count: u64,
    ) -> Result<impl Stream<Item = Tick> + Send + 'static, ClockError>;

    /// With a stream type and names of its own.
    #[subscription(subscribe = "watch", item_name = "changed", unsubscribe = "unwatch", item = u64)]
    async fn changes(
        &self,
        #[params] changes: Vec<u64>,
    ) -> Result<BoxStream<'static, u64>, ClockError>;

    /// With a sink.
    #[subscription(name = "alarm", item = String)]
    async fn alarms(&self, cx: Context, sink: Sink, text: Option<String>)
    -> Result<(), ClockError>;

    /// Blocks of a chain, with the names of Ethereum.
    #[subscription(topic = Topic::ethereum("newHeads"))]
    async fn heads(&self) -> Result<impl Stream<Item = u64> + Send + 'static, ClockError>;

    #[subscription(topic = Topic::ethereum("logs").overflow(Overflow::DropOldest))]
    async fn logs(
        &self,
        address: String,
        topics: Option<Vec<String>>,
    ) -> Result<impl Stream<Item = String> + Send + 'static, ClockError>;
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openrpc", derive(antiphon::schemars::JsonSchema))]
pub(crate) struct Tick {
    at: u64,
}

#[derive(Debug, PartialEq, RpcError)]
pub(crate) enum ClockError {
    #[rpc(code = -32060, message = "the clock has stopped")]
    Stopped,
}

pub(crate) struct Tower;

impl Clock for Tower {
    async fn ticks(
        &self,
        first: u64,
        count: u64,
    ) -> Result<impl Stream<Item = Tick> + Send + 'static, ClockError> {
        let last = first.checked_add(count).ok_or(ClockError::Stopped)?;
        Ok(stream::iter((first..last).map(|at| Tick { at })))
    }

    async fn changes(&self, changes: Vec<u64>) -> Result<BoxStream<'static, u64>, ClockError> {
        Ok(stream::iter(changes).boxed())
    }

    async fn alarms(
        &self,
        cx: Context,
        sink: Sink,
        text: Option<String>,
    ) -> Result<(), ClockError> {
        let text = text.ok_or(ClockError::Stopped)?;
        let transport = cx.connection().transport;
        sink.send(format!("{text} by {transport}")).await.map_err(|_| ClockError::Stopped)
    }

    async fn heads(&self) -> Result<impl Stream<Item = u64> + Send + 'static, ClockError> {
        Ok(stream::iter(0..).take(2).chain(stream::pending()))
    }

    async fn logs(
        &self,
        address: String,
        topics: Option<Vec<String>>,
    ) -> Result<impl Stream<Item = String> + Send + 'static, ClockError> {
        let all = std::iter::once(address).chain(topics.into_iter().flatten());
        Ok(stream::iter(all.collect::<Vec<_>>()).chain(stream::pending()))
    }
}

#[tokio::test]
async fn items_have_the_types_of_the_contract() {
    for wire in WIRES {
        let clock = ClockClient::new(&serve(wire, Tower.into_router()).await);
        let ticks: Vec<_> = clock.ticks(7, 3).await.unwrap().try_collect().await.unwrap();
        assert_eq!(ticks, [Tick { at: 7 }, Tick { at: 8 }, Tick { at: 9 }]);
        let changes = clock.changes(vec![5, 6]).await.unwrap();
        assert_eq!(changes.try_collect::<Vec<_>>().await.unwrap(), [5, 6]);
        let mut alarms = clock.alarms(Some("wake up".to_owned())).await.unwrap();
        let alarm = alarms.next().await.unwrap().unwrap();
        assert_eq!(alarm, format!("wake up by {}", wire.split(':').next().unwrap()));
    }
}

#[tokio::test]
async fn kinds_of_a_topic_share_their_methods() {
    let clock = ClockClient::new(&serve(WIRES[0], Tower.into_router()).await);
    let heads = clock.heads().await.unwrap().take(2);
    assert_eq!(heads.try_collect::<Vec<_>>().await.unwrap(), [0, 1]);
    let logs = clock.logs("0x1".to_owned(), Some(vec!["a".to_owned()])).await.unwrap().take(2);
    assert_eq!(logs.try_collect::<Vec<_>>().await.unwrap(), ["0x1", "a"]);
    let mut logs = clock.logs("0x2".to_owned(), None).await.unwrap();
    assert_eq!(logs.next().await.unwrap().unwrap(), "0x2");
}

#[tokio::test]
async fn a_refused_subscription_returns_the_error_of_the_contract() {
    let client = serve(WIRES[0], Tower.into_router()).await;
    let clock = ClockClient::new(&client);
    let refused = clock.ticks(u64::MAX, 1).await.unwrap_err();
    assert_eq!(refused.as_error(), Some(ClockError::Stopped));
    let refused = clock.alarms(None).await.unwrap_err();
    assert_eq!(refused.as_error(), Some(ClockError::Stopped));
    let refused = client.call::<()>("clock.subscribe_ticks", [true]).await.unwrap_err();
    assert!(refused.to_string().contains("-32602"), "{refused}");
}

#[test]
fn names_on_the_wire_follow_the_contract() {
    let router = Tower.into_router();
    let mut names: Vec<_> = router.names().collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "clock.subscribe_alarm",
            "clock.subscribe_ticks",
            "clock.unsubscribe_alarm",
            "clock.unsubscribe_ticks",
            "clock.unwatch",
            "clock.watch",
            "eth_subscribe",
            "eth_unsubscribe",
        ]
    );
}

#[cfg(feature = "openrpc")]
#[test]
fn the_description_of_a_subscription_is_complete() {
    use antiphon::Router;
    use antiphon::openrpc::Info;
    use serde_json::json;

    let router = Router::new().nest("v1.", Tower.into_router());
    let document = serde_json::to_value(router.openrpc(Info::new("Clock", "1.0.0"))).unwrap();
    let method = |name: &str| {
        let methods = document["methods"].as_array().unwrap();
        let mut found = methods.iter().filter(|method| method["name"] == name);
        let method = found.next().unwrap().clone();
        assert_eq!(found.next(), None);
        method
    };
    let ticks = method("v1.clock.subscribe_ticks");
    assert_eq!(ticks["summary"], "Ticks.");
    assert_eq!(ticks["params"][1]["schema"]["default"], 3);
    assert_eq!(ticks["errors"][0]["code"], -32060);
    assert_eq!(
        ticks["x-subscription"],
        json!({
            "item": "v1.clock.ticks",
            "schema": {"$ref": "#/components/schemas/Tick"},
            "unsubscribe": "v1.clock.unsubscribe_ticks",
        })
    );
    assert_eq!(method("v1.clock.unsubscribe_ticks")["result"]["schema"]["type"], "boolean");
    let ethereum = method("v1.eth_subscribe");
    assert_eq!(ethereum["params"][0]["schema"], json!({"enum": ["newHeads", "logs"]}));
    let logs = &ethereum["x-subscription"][1];
    assert_eq!((&logs["kind"], &logs["item"]), (&json!("logs"), &json!("v1.eth_subscription")));
    assert_eq!(logs["params"][0]["name"], "address");
    method("v1.eth_unsubscribe");
}
