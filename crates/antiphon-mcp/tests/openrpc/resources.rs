//! Subscriptions as resources: one subscription of the service for all readers and subscribers.

use std::time::Duration;

use antiphon::openrpc::Description;
use antiphon::{Client, Context, Dialect, Router, Topic};
use antiphon_mcp::from_openrpc::ToolsFromOpenRpc;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::client::{McpClient, soon};

/// A service with the topic `prices`, whose newest item the test sets.
struct Service {
    price: watch::Sender<u64>,
    /// `opened` and `closed`, for each subscription.
    events: UnboundedReceiver<&'static str>,
    router: Router,
}

struct Open(UnboundedSender<&'static str>);

impl Drop for Open {
    fn drop(&mut self) {
        let _ = self.0.send("closed");
    }
}

fn service() -> Service {
    let (price, prices) = watch::channel(1_u64);
    let (told, events) = unbounded_channel();
    let follow = move |_: Option<Value>, _: Context| {
        let (prices, open) = (prices.clone(), Open(told.clone()));
        let _ = told.send("opened");
        let items =
            stream::unfold((prices, open, true), |(mut prices, open, is_first)| async move {
                if !is_first {
                    prices.changed().await.ok()?;
                }
                let price = *prices.borrow_and_update();
                Some((json!({ "price": price }), (prices, open, false)))
            });
        async move { Ok(items.boxed()) }
    };
    let described = Description::subscription::<(), Value>().docs("The price.");
    let router =
        Router::new().subscription("prices", follow).describe(Topic::new("prices"), described);
    Service { price, events, router }
}

const URI: &str = "subscription:///subscribe_prices";

async fn read(client: &McpClient) -> String {
    let result = client.call("resources/read", json!({ "uri": URI })).await;
    result["contents"][0]["text"].as_str().unwrap_or("nothing").to_owned()
}

/// Reads until the content is this: an update may be told before the newest item is there.
async fn reads(client: &mut McpClient, expected: &str) {
    while read(client).await != expected {
        client.told("notifications/resources/updated").await;
    }
}

#[tokio::test]
async fn readers_and_subscribers_share_a_subscription() {
    let mut service = service();
    let tools = ToolsFromOpenRpc::of_router(service.router.clone())
        .update_interval(Duration::from_millis(1))
        .subscription_idle(Duration::from_millis(30));
    let mut client = McpClient::of_tools(tools).await;
    let list = client.call("resources/list", json!({})).await;
    assert_eq!(
        list["resources"][0],
        json!({
            "uri": URI, "name": "subscribe_prices", "mimeType": "application/json",
            "description": "The price.\n\nThe newest item. Subscribe to get new ones.",
        })
    );
    client.call("resources/subscribe", json!({ "uri": URI })).await;
    assert_eq!(client.told("notifications/resources/updated").await, json!({ "uri": URI }));
    assert_eq!(read(&client).await, r#"{"price":1}"#);
    service.price.send(2).unwrap();
    client.told("notifications/resources/updated").await;
    reads(&mut client, r#"{"price":2}"#).await;
    assert_eq!(soon(service.events.recv()).await, Some("opened"));
    assert!(service.events.try_recv().is_err(), "it was opened twice, or closed");
    client.call("resources/unsubscribe", json!({ "uri": URI })).await;
    assert_eq!(soon(service.events.recv()).await, Some("closed"));
    assert_eq!(read(&client).await, r#"{"price":2}"#);
    assert_eq!(soon(service.events.recv()).await, Some("opened"));
    // Without a subscriber, the reader does not keep it open.
    assert_eq!(soon(service.events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn a_modern_client_listens() {
    let service = service();
    let tools = ToolsFromOpenRpc::of_router(service.router.clone());
    let server = antiphon_mcp::McpServer::builder("test", "1").tools_from(tools).unwrap().build();
    let mut client = McpClient::of(server.clone()).await;
    let rpc = client.rpc.clone();
    let listening = tokio::spawn(async move {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let filter = json!({ "resourceSubscriptions": [URI] });
        rpc.call::<Value>("subscriptions/listen", json!({ "_meta": meta, "notifications": filter }))
            .await
    });
    client.told("notifications/subscriptions/acknowledged").await;
    let told = client.told("notifications/resources/updated").await;
    assert_eq!(told["uri"], URI);
    server.stop_listening();
    soon(listening).await.unwrap().unwrap();
}

#[tokio::test]
async fn params_are_parts_of_the_uri() {
    let follow = |(name, count): (String, u64), _: Context| async move {
        Ok(stream::iter([json!([name, count])]).chain(stream::pending()).boxed())
    };
    let described = Description::subscription::<(String, u64), Value>();
    let router = Router::new().subscription("news", follow).describe(Topic::new("news"), described);
    let client = McpClient::of_tools(ToolsFromOpenRpc::of_router(router)).await;
    let list = client.call("resources/templates/list", json!({})).await;
    let template = "subscription:///subscribe_news/{param1}/{param2}";
    assert_eq!(list["resourceTemplates"][0]["uriTemplate"], template);
    let uri = "subscription:///subscribe_news/a%20b/7";
    let result = client.call("resources/read", json!({ "uri": uri })).await;
    assert_eq!(result["contents"][0]["text"], r#"["a b",7]"#);
    assert_eq!(result["contents"][0]["uri"], uri);
}

#[tokio::test]
async fn kinds_of_one_method_are_resources_of_their_own() {
    let follow = |kind: &'static str| {
        move |_: Option<Value>, _: Context| async move {
            Ok(stream::iter([kind]).chain(stream::pending()).boxed())
        }
    };
    let router = ["newHeads", "logs"].into_iter().fold(Router::new(), |router, kind| {
        let described = Description::subscription::<(), String>();
        let topic = Topic::ethereum(kind);
        router.subscription(topic.clone(), follow(kind)).describe(topic, described)
    });
    let client = McpClient::of_tools(ToolsFromOpenRpc::of_router(router)).await;
    for kind in ["newHeads", "logs"] {
        let uri = format!("subscription:///eth_subscribe/{kind}");
        let result = client.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(result["contents"][0]["text"], format!("\"{kind}\""));
    }
}

#[tokio::test]
async fn a_failure_and_the_limit_are_errors() {
    let router = Router::new().subscription("news", |_: Option<Value>, _: Context| async {
        Err::<stream::Pending<Value>, _>(antiphon::ErrorObject::new(-32050, "no news"))
    });
    let described = Description::subscription::<(), Value>();
    let router = router.describe(Topic::new("news"), described);
    let failed = async |tools| {
        let client = McpClient::of_tools(tools).await;
        let params = json!({ "uri": "subscription:///subscribe_news" });
        let read = client.rpc.call::<Value>("resources/read", params);
        soon(read).await.unwrap_err().to_string()
    };
    let error = failed(ToolsFromOpenRpc::of_router(router.clone())).await;
    assert!(error.contains("no news"), "{error}");
    let error = failed(ToolsFromOpenRpc::of_router(router).max_subscriptions(0)).await;
    assert!(error.contains("0 subscriptions are open"), "{error}");
}

/// A client that reconnects subscribes again, and nobody has to read first.
#[tokio::test]
async fn a_subscription_survives_a_reconnect() {
    let mut service = service();
    let bound = antiphon::Server::bind("tcp://127.0.0.1:0").await.unwrap();
    let endpoint = bound.endpoint().to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let first = tokio::spawn(bound.serve_until(service.router.clone(), async {
        let _ = stopped.await;
    }));
    let reconnect =
        antiphon::Reconnect::new().pause(Duration::from_millis(1), Duration::from_millis(20));
    let upstream = Client::builder().dialect(Dialect::plain()).reconnect(reconnect);
    let upstream = upstream.connect(endpoint.as_str()).await.unwrap();
    let document = service.router.openrpc(antiphon::openrpc::Info::new("s", "1"));
    let tools =
        ToolsFromOpenRpc::new(document, &upstream).update_interval(Duration::from_millis(1));
    let mut client = McpClient::of_tools(tools).await;
    client.call("resources/subscribe", json!({ "uri": URI })).await;
    client.told("notifications/resources/updated").await;
    stop.send(()).unwrap();
    soon(first).await.unwrap().unwrap();
    let bound = soon(async {
        loop {
            match antiphon::Server::bind(&endpoint).await {
                Ok(bound) => return bound,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    tokio::spawn(bound.serve(service.router.clone()));
    for expected in ["opened", "closed", "opened"] {
        assert_eq!(soon(service.events.recv()).await, Some(expected));
    }
    service.price.send(9).unwrap();
    reads(&mut client, r#"{"price":9}"#).await;
}
