//! Changes of the server: told to the clients that want them, and to no others.

use antiphon::Limits;
use antiphon_mcp::{McpServer, RequestContext, RequestError, ServerResource, ServerTool};
use serde_json::{Value, json};

use crate::support::duplex::{Duplex, serve_tcp};
use crate::support::{code, modern, notification, request, within};

pub(crate) fn tool(name: &str) -> ServerTool {
    ServerTool::new(name, |(): (), _cx: RequestContext| async {})
}

pub(crate) fn server() -> McpServer {
    let resource = ServerResource::new("doc://a", "a", |_cx| async { Ok::<_, RequestError>("a") });
    McpServer::builder("test", "1").tool(tool("t")).resource(resource).build()
}

/// The messages that have come before the response to a ping.
async fn told(client: &mut Duplex) -> Vec<Value> {
    let id = client.begin("ping", json!({})).await;
    let mut told = Vec::new();
    loop {
        match client.next().await {
            pong if pong["id"] == id => return told,
            message => told.push(message),
        }
    }
}

#[tokio::test]
async fn legacy_clients_are_told_of_lists_once_they_are_initialized() {
    let server = server();
    let port = serve_tcp(&server, Limits::default()).await;
    let mut early = Duplex::to_port(port).await;
    let mut client = Duplex::to_port(port).await;
    client.initialize("2025-06-18", json!({})).await;
    for (change, method) in [
        (server.add_tool(tool("u")), "notifications/tools/list_changed"),
        (assert!(server.remove_tool("u")), "notifications/tools/list_changed"),
        (server.prompts_changed(), "notifications/prompts/list_changed"),
        (assert!(server.remove_resource("doc://a")), "notifications/resources/list_changed"),
    ] {
        let () = change;
        assert!(!method.is_empty());
    }
    assert!(!server.remove_tool("u"), "nothing to tell");
    let mut methods = Vec::new();
    while methods.len() < 3 {
        methods.push(client.next().await["method"].as_str().unwrap().to_owned());
    }
    methods.sort_unstable();
    methods.dedup();
    assert_eq!(methods.len(), 3, "each list was named: {methods:?}");
    assert_eq!(early.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn updates_of_a_resource_reach_its_subscribers_only() {
    let server = server();
    let port = serve_tcp(&server, Limits::default()).await;
    let (mut one, mut other) = (Duplex::to_port(port).await, Duplex::to_port(port).await);
    for client in [&mut one, &mut other] {
        client.initialize("2025-11-25", json!({})).await;
    }
    let uri = json!({ "uri": "doc://a" });
    assert_eq!(one.call("resources/subscribe", uri.clone()).await["result"], json!({}));
    server.resource_updated("doc://a");
    server.resource_updated("doc://b");
    let update = one.next().await;
    assert_eq!(update, notification("notifications/resources/updated", uri.clone()));
    assert_eq!(one.call("resources/unsubscribe", uri.clone()).await["result"], json!({}));
    assert_eq!(one.call("resources/unsubscribe", uri).await["result"], json!({}));
    server.resource_updated("doc://a");
    server.tools_changed();
    for client in [&mut one, &mut other] {
        assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
        assert_eq!(told(client).await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn subscriptions_are_bounded_in_number_and_bytes() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    for n in 0..1000 {
        let response = client.call("resources/subscribe", json!({ "uri": format!("d:{n}") })).await;
        assert_eq!(response["result"], json!({}));
    }
    let over = client.call("resources/subscribe", json!({ "uri": "d:1000" })).await;
    assert_eq!(code(&over), -32602);
    let known = client.call("resources/subscribe", json!({ "uri": "d:7" })).await;
    assert_eq!(known["result"], json!({}));
    client.call("resources/unsubscribe", json!({ "uri": "d:7" })).await;
    let again = client.call("resources/subscribe", json!({ "uri": "d:1000" })).await;
    assert_eq!(again["result"], json!({}));

    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    let long = |n: usize| json!({ "uri": format!("{n}:{}", "x".repeat(8000)) });
    let mut accepted = 0;
    while client.call("resources/subscribe", long(accepted)).await["result"].is_object() {
        accepted += 1;
        assert!(accepted < 100, "a client can make the server keep any number of bytes");
    }
    assert!(accepted > 4, "{accepted}");
    let huge = json!({ "uri": "x".repeat(1 << 20) });
    let response = client.call("resources/subscribe", huge).await;
    assert_eq!(code(&response), -32602);
    assert!(response.to_string().len() < 1000);
}

fn listen(filter: Value) -> Value {
    modern(json!({ "notifications": filter }))
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[tokio::test]
async fn a_subscription_begins_with_its_acknowledgement_and_ends_with_its_result() {
    let server = server();
    let mut client = Duplex::connect(&server).await;
    let filter = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourceSubscriptions": ["doc://a"],
    });
    // Byte for byte, whatever the id is.
    client
        .send_text(
            &request(0, "subscriptions/listen", listen(filter))
                .to_string()
                .replace(r#""id":0"#, r#""id":12345678901234567890123"#),
        )
        .await;
    let id = r#"subscriptionId":12345678901234567890123}"#;
    let text = client.next_line().await.unwrap();
    assert!(text.contains(id), "{text}");
    let acknowledged: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let accepted = &acknowledged["params"]["notifications"];
    assert_eq!(accepted["toolsListChanged"], true);
    assert!(accepted.get("promptsListChanged").is_none(), "there are no prompts: {accepted}");
    server.resources_changed();
    server.resource_updated("doc://b");
    server.resource_updated("doc://a");
    let text = client.next_line().await.unwrap();
    assert!(text.contains(id) && text.contains("doc://a"), "{text}");
    server.stop_listening();
    let text = client.next_line().await.unwrap();
    let cancelled: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert!(text.contains(r#""requestId":12345678901234567890123"#) && text.contains(id), "{text}");
    let text = client.next_line().await.unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["result"]["resultType"], "complete");
    assert!(text.contains(r#"subscriptionId":12345678901234567890123"#), "{text}");
}

#[tokio::test]
async fn two_subscriptions_of_a_connection_are_independent() {
    let server = server();
    let mut client = Duplex::connect(&server).await;
    for (id, filter) in
        [("a", json!({ "toolsListChanged": true })), ("b", json!({ "resourcesListChanged": true }))]
    {
        client.send(&request(id, "subscriptions/listen", listen(filter))).await;
        assert_eq!(client.next().await["params"]["_meta"][SUBSCRIPTION], id);
    }
    server.resources_changed();
    assert_eq!(client.next().await["params"]["_meta"][SUBSCRIPTION], "b");
    client.send(&notification("notifications/cancelled", json!({ "requestId": "a" }))).await;
    // The ping comes after the cancellation has been read.
    let pong = client.call("tools/list", modern(json!({}))).await;
    assert!(pong["result"].is_object());
    server.tools_changed();
    server.resources_changed();
    assert_eq!(client.next().await["params"]["_meta"][SUBSCRIPTION], "b");
    client.send(&notification("notifications/cancelled", json!({ "requestId": "b" }))).await;
    let last = client.call("tools/list", modern(json!({}))).await;
    assert!(last["result"].is_object(), "no response to a cancelled request: {last}");
}

#[tokio::test]
async fn subscriptions_leave_room_for_other_requests() {
    let mut client = Duplex::connect(&server()).await;
    for n in 0..256 {
        let id = format!("s{n}");
        client.send(&request(&*id, "subscriptions/listen", listen(json!({})))).await;
        assert_eq!(client.next().await["params"]["_meta"][SUBSCRIPTION], id);
    }
    let refused = client.call("subscriptions/listen", listen(json!({}))).await;
    assert_eq!(code(&refused), -32009);
    client.send(&notification("notifications/cancelled", json!({ "requestId": "s7" }))).await;
    let answered = client.call("tools/list", modern(json!({}))).await;
    assert!(answered["result"].is_object(), "{answered}");
    client.send(&request("next", "subscriptions/listen", listen(json!({})))).await;
    assert_eq!(client.next().await["params"]["_meta"][SUBSCRIPTION], "next");
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_refused() {
    let mut client = Duplex::connect(&server()).await;
    let many: Vec<_> = (0..1001).map(|n| format!("d:{n}")).collect();
    let long: Vec<_> = (0..100).map(|n| format!("{n}:{}", "x".repeat(8000))).collect();
    for filter in [
        json!({ "resourceSubscriptions": many }),
        json!({ "resourceSubscriptions": long }),
        json!({ "resourceSubscriptions": "doc://a" }),
        json!({ "toolsListChanged": 7 }),
        json!(7),
    ] {
        let response = client.call("subscriptions/listen", listen(filter)).await;
        assert_eq!(code(&response), -32602, "{response}");
    }
}

#[tokio::test]
async fn a_shutdown_ends_subscriptions_with_their_results() {
    let server = server();
    let bound = server.bind("tcp://127.0.0.1:0").await.unwrap();
    let port = bound.endpoint().port().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (stopping, handle) = (stop.clone(), server.clone());
    let serving =
        tokio::spawn(async move { handle.serve_until(bound, stopping.cancelled()).await });
    let mut client = Duplex::to_port(port).await;
    let filter = json!({ "toolsListChanged": true });
    let id = client.begin("subscriptions/listen", listen(filter)).await;
    client.next().await;
    stop.cancel();
    assert_eq!(client.next().await["method"], "notifications/cancelled");
    let last = client.next().await;
    assert_eq!((last["id"].as_u64(), last["result"].is_object()), (Some(id), true), "{last}");
    within(serving).await.unwrap().unwrap();
    // Its other endpoints go on, and so does the server after `stop_listening`.
    for _ in 0..2 {
        let mut client = Duplex::connect(&server).await;
        client.begin("subscriptions/listen", listen(json!({ "toolsListChanged": true }))).await;
        assert_eq!(client.next().await["method"], "notifications/subscriptions/acknowledged");
        server.tools_changed();
        assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
        server.stop_listening();
        assert_eq!(client.next().await["method"], "notifications/cancelled");
        assert!(client.next().await["result"].is_object());
    }
}
