//! Lists: pages, cursors, and entries that come and go.

use std::time::Duration;

use antiphon_mcp::types::CacheScope;
use antiphon_mcp::{
    McpServer, RequestContext, RequestError, ServerPrompt, ServerResource, ServerTool,
};
use serde_json::{Value, json};

use crate::support::duplex::Duplex;
use crate::support::{code, modern, names};

fn tool(name: &str) -> ServerTool {
    ServerTool::new(name, |(): (), _cx: RequestContext| async {})
}

/// A server with the tools t0 to t6, in pages of three.
fn server() -> McpServer {
    let server = McpServer::builder("test", "1")
        .page_size(3)
        .cache(Duration::from_secs(5), CacheScope::Public)
        .prompt(ServerPrompt::new("p", |(): (), _cx: RequestContext| async { Ok("p") }))
        .resource(ServerResource::new("r://1", "r", |_cx| async { Ok::<_, RequestError>("r") }))
        .build();
    (0..7).for_each(|n| server.add_tool(tool(&format!("t{n}"))));
    server
}

fn after(page: &Value) -> Value {
    json!({ "cursor": page["result"]["nextCursor"] })
}

#[tokio::test]
async fn pages_hold_all_entries_in_order() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.call("tools/list", params).await;
        all.extend(names(&page, "tools"));
        if page["result"].get("nextCursor").is_none() {
            break;
        }
        params = after(&page);
    }
    assert_eq!(all, ["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
}

#[tokio::test]
async fn entries_that_stay_are_seen_once_while_others_come_and_go() {
    let server = server();
    let mut client = Duplex::connect(&server).await;
    let first = client.call("tools/list", modern(json!({}))).await;
    ["t0", "t2", "t4"].iter().for_each(|name| assert!(server.remove_tool(name)));
    server.add_tool(tool("new"));
    let second = client.call("tools/list", modern(after(&first))).await;
    assert_eq!(names(&second, "tools"), ["t3", "t5", "t6"]);
    let third = client.call("tools/list", modern(after(&second))).await;
    assert_eq!(names(&third, "tools"), ["new"]);
}

#[tokio::test]
async fn a_cursor_of_another_list_or_of_nobody_is_refused() {
    let mut client = Duplex::connect(&server()).await;
    let page = client.call("tools/list", modern(json!({}))).await;
    for list in ["prompts/list", "resources/list", "resources/templates/list"] {
        let response = client.call(list, modern(after(&page))).await;
        assert_eq!(code(&response), -32602, "{list}");
    }
    let huge = "t".repeat(1 << 20);
    for cursor in ["", "0", "t", "t-1", "tzzzzzzzzzzzzzzzzz", "r1", "\u{0}", "ü", huge.as_str()] {
        let response = client.call("tools/list", modern(json!({ "cursor": cursor }))).await;
        assert_eq!(code(&response), -32602, "{cursor}");
        assert!(response.to_string().len() < 1000, "the cursor is repeated");
    }
    for odd in [json!(7), json!({}), json!(["t1"])] {
        let response = client.call("tools/list", modern(json!({ "cursor": odd }))).await;
        assert_eq!(code(&response), -32602, "{odd}");
    }
    let null = client.call("tools/list", modern(json!({ "cursor": null }))).await;
    assert_eq!(names(&null, "tools").len(), 3);
}

#[tokio::test]
async fn modern_lists_say_how_long_they_may_be_kept() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let result = client.call(list, modern(json!({}))).await["result"].take();
        assert_eq!(result["ttlMs"], 5000, "{list}");
        assert_eq!(result["cacheScope"], "public", "{list}");
        assert_eq!(result["resultType"], "complete", "{list}");
        assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"].is_object(), "{list}");
        let result = client.call(list, json!({})).await["result"].take();
        for member in ["ttlMs", "cacheScope", "resultType", "_meta"] {
            assert!(result.get(member).is_none(), "{list}: {result}");
        }
    }
}

#[tokio::test]
async fn a_server_without_a_list_does_not_know_its_methods() {
    let server = McpServer::builder("empty", "1").build();
    let mut client = Duplex::start(&server, "2025-11-25", json!({})).await;
    for method in [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
    ] {
        let params = json!({ "name": "a", "uri": "a:b" });
        assert_eq!(code(&client.call(method, params.clone()).await), -32601, "{method}");
        assert_eq!(code(&client.call(method, modern(params)).await), -32601, "{method}");
    }
}
