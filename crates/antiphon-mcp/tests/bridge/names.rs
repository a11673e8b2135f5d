//! The names at the bridge: prefixes, patterns, clashes.

use antiphon_mcp::bridge::{Bridge, BridgeError, Upstream};
use antiphon_mcp::{McpServer, RequestContext, ServerBuilder, ServerPrompt, ServerTool};
use serde_json::json;

use crate::support::duplex::Duplex;
use crate::support::{code, names, text, tool, within};
use crate::upstreams::{Way, bridge, builder};

/// A server whose tools return its name.
fn named(name: &'static str, tools: &[&str]) -> ServerBuilder {
    tools.iter().fold(McpServer::builder(name, "1"), |builder, tool| {
        builder.tool(ServerTool::new(*tool, move |(): (), _cx: RequestContext| async move { name }))
    })
}

async fn upstream(name: &'static str, tools: &[&str]) -> Upstream {
    Way::LegacyTcp.serve(named(name, tools)).await.1
}

#[tokio::test]
async fn two_upstreams_are_one_server() {
    let one = upstream("one", &["read", "write", "read_all"]).await.prefix("fs.").deny(["write*"]);
    let two = upstream("two", &["read", "list"]).await.rename("list", "ls").allow(["list"]);
    let server = bridge([one, two]).await;
    assert_eq!(server.implementation().name, "antiphon-bridge");
    let mut client = Duplex::start(&server, "2025-11-25", json!({})).await;
    let list = client.call("tools/list", json!({})).await;
    assert_eq!(names(&list, "tools"), ["fs.read", "fs.read_all", "ls"]);
    for (name, expected) in [("fs.read", "one"), ("ls", "two")] {
        let called = client.call("tools/call", tool(name, json!({}))).await;
        assert_eq!(text(&called), expected);
    }
    for hidden in ["fs.write", "read", "list", "write"] {
        let refused = client.call("tools/call", tool(hidden, json!({}))).await;
        assert_eq!(code(&refused), -32602, "{hidden}");
    }
}

#[tokio::test]
async fn a_clash_names_both_owners() {
    let one = upstream("one", &["a"]).await;
    let two = upstream("two", &["b", "c"]).await;
    let three = upstream("three", &["c"]).await;
    let endpoint =
        |upstream: &Upstream| format!("{upstream:?}").split('"').nth(1).unwrap().to_owned();
    let (second, third) = (endpoint(&two), endpoint(&three));
    let built = [one, two, three].into_iter().fold(Bridge::new(), Bridge::upstream).build();
    let error = within(built).await.unwrap_err();
    let BridgeError::SameName { kind, name, first, second: other } = error else {
        panic!("{error}")
    };
    assert_eq!((kind, name.as_str()), ("tool", "c"));
    assert_eq!((first, other), (second, third));
}

#[tokio::test]
async fn two_tools_of_one_upstream_cannot_get_one_name() {
    let upstream = upstream("one", &["a", "b"]).await.rename("a", "b");
    let error = within(Bridge::new().upstream(upstream).build()).await.unwrap_err();
    assert!(matches!(error, BridgeError::SameName { .. }), "{error}");
}

#[tokio::test]
async fn prompts_clash_too() {
    let prompt = || ServerPrompt::new("p", |(): (), _cx| async { Ok("x") });
    let one = Way::ModernTcp.serve(builder().prompt(prompt())).await.1;
    let two = Way::LegacyTcp.serve(builder().prompt(prompt())).await.1;
    let error = within(Bridge::new().upstream(one.clone()).upstream(two.clone()).build()).await;
    let error = error.unwrap_err();
    assert!(error.to_string().starts_with("the prompt `p` would be one of tcp://"), "{error}");
    let server = bridge([one, two.prefix("x_")]).await;
    let mut client = Duplex::start(&server, "2025-11-25", json!({})).await;
    let list = client.call("prompts/list", json!({})).await;
    assert_eq!(names(&list, "prompts"), ["p", "x_p"]);
}

#[tokio::test]
async fn a_name_that_clients_refuse_is_left_out() {
    let upstream = upstream("one", &["a"]).await.rename("a", "not a name");
    let mut client = Duplex::start(&bridge([upstream]).await, "2025-11-25", json!({})).await;
    let list = client.call("tools/list", json!({})).await;
    assert_eq!(names(&list, "tools"), [""; 0]);
}
