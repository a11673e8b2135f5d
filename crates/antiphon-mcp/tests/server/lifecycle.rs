//! The beginning of a session, and requests of both eras on one connection.

use antiphon_mcp::client::McpClient;
use antiphon_mcp::types::Revision;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::json;

use crate::support::duplex::Duplex;
use crate::support::{code, initialize, modern, names, request, text, tool};

pub(crate) fn server() -> McpServer {
    McpServer::builder("test", "1.2.3")
        .instructions("Read this.")
        .tool(ServerTool::new("revision", |(): (), cx: RequestContext| async move {
            cx.revision().to_string()
        }))
        .build()
}

#[tokio::test]
async fn each_legacy_revision_is_agreed_on() {
    let server = server();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Duplex::connect(&server).await;
        let response = client.initialize(revision, json!({})).await;
        let result = &response["result"];
        assert_eq!(result["protocolVersion"], revision);
        assert_eq!(result["serverInfo"]["name"], "test");
        assert_eq!(result["instructions"], "Read this.");
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result.get("resultType").is_none(), "{result}");
        let called = client.call("tools/call", tool("revision", json!({}))).await;
        assert_eq!(text(&called), revision);
        assert!(called["result"].get("resultType").is_none(), "{called}");
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    }
}

#[tokio::test]
async fn another_revision_is_answered_with_the_latest_legacy_one() {
    let server = server();
    for proposed in ["2026-07-28", "1999-01-01", "", "x"] {
        let mut client = Duplex::connect(&server).await;
        let response = client.initialize(proposed, json!({})).await;
        assert_eq!(response["result"]["protocolVersion"], "2025-11-25", "{proposed}");
    }
    let old = McpServer::builder("old", "1").revisions([Revision::V2025_03_26]).build();
    let mut client = Duplex::connect(&old).await;
    let response = client.initialize("2025-11-25", json!({})).await;
    assert_eq!(response["result"]["protocolVersion"], "2025-03-26");
}

#[tokio::test]
async fn a_modern_server_names_its_revisions_to_a_legacy_client() {
    let server = McpServer::builder("new", "1").revisions([Revision::V2026_07_28]).build();
    let mut client = Duplex::connect(&server).await;
    let response = client.call("initialize", initialize("2025-11-25", json!({}))).await;
    assert_eq!(code(&response), -32022);
    assert_eq!(response["error"]["data"]["supported"], json!(["2026-07-28"]));
    let response = client.call("tools/list", json!({})).await;
    assert!(response["error"].is_object(), "{response}");
}

#[tokio::test]
async fn nothing_but_a_ping_comes_before_initialize() {
    let mut client = Duplex::connect(&server()).await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    for method in ["tools/list", "tools/call", "logging/setLevel", "no/such"] {
        let response = client.call(method, json!({})).await;
        assert_eq!(code(&response), -32600, "{method}");
        assert!(response["error"]["data"].as_str().unwrap().contains("initialize"), "{response}");
    }
    client.initialize("2025-06-18", json!({})).await;
    assert_eq!(names(&client.call("tools/list", json!({})).await, "tools"), ["revision"]);
    let again = client.call("initialize", initialize("2025-06-18", json!({}))).await;
    assert_eq!(code(&again), -32600);
    assert_eq!(text(&client.call("tools/call", tool("revision", json!({}))).await), "2025-06-18");
}

#[tokio::test]
async fn both_eras_share_a_connection() {
    let mut client = Duplex::connect(&server()).await;
    let early = client.call("tools/call", modern(tool("revision", json!({})))).await;
    assert_eq!(text(&early), "2026-07-28");
    client.initialize("2025-03-26", json!({})).await;
    for (params, revision) in [
        (tool("revision", json!({})), "2025-03-26"),
        (modern(tool("revision", json!({}))), "2026-07-28"),
        (tool("revision", json!({})), "2025-03-26"),
    ] {
        assert_eq!(text(&client.call("tools/call", params).await), revision);
    }
    // Methods of one era only.
    assert_eq!(code(&client.call("ping", modern(json!({}))).await), -32601);
    assert_eq!(code(&client.call("initialize", modern(json!({}))).await), -32601);
    assert_eq!(code(&client.call("server/discover", json!({})).await), -32601);
    assert_eq!(code(&client.call("subscriptions/listen", json!({})).await), -32601);
}

#[tokio::test]
async fn a_modern_request_states_everything() {
    let mut client = Duplex::connect(&server()).await;
    let mut unknown = modern(json!({}));
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let response = client.call("tools/list", unknown).await;
    assert_eq!(code(&response), -32022);
    assert_eq!(response["error"]["data"]["requested"], "2031-01-01");
    let mut legacy = modern(json!({}));
    legacy["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    assert_eq!(code(&client.call("tools/list", legacy).await), -32022);
    let mut bare = modern(json!({}));
    bare["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(code(&client.call("tools/list", bare).await), -32602);
    assert_eq!(code(&client.call("server/discover", json!({})).await), -32602);
    for meta in [json!([]), json!(7), json!("x")] {
        let response = client.call("tools/list", json!({ "_meta": meta })).await;
        assert_eq!(code(&response), -32602, "{response}");
    }
}

#[tokio::test]
async fn discover_describes_the_server() {
    let mut client = Duplex::connect(&server()).await;
    let result = client.call("server/discover", modern(json!({}))).await["result"].take();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(result["instructions"], "Read this.");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], "1.2.3");
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["cacheScope"], "private");
}

#[tokio::test]
async fn the_example_serves_a_process() {
    let mut client = Duplex::child();
    client.initialize("2025-11-25", json!({})).await;
    let called = client.call("tools/call", tool("test_simple_text", json!({}))).await;
    assert!(text(&called).contains("simple text"), "{called}");
    client.send(&request("a", "tools/list", modern(json!({})))).await;
    let listed = client.next().await;
    assert_eq!(listed["id"], "a");
    assert_eq!(listed["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_websocket_is_a_connection() {
    let server = server();
    let bound = server.bind("ws://127.0.0.1:0").await.unwrap();
    let endpoint = bound.endpoint().to_string();
    tokio::spawn(bound.serve(server));
    let client = McpClient::connect(&endpoint).await.unwrap();
    let called = client.call_tool("revision", ()).await.unwrap();
    assert_eq!(called.joined_text(), "2026-07-28");
}
