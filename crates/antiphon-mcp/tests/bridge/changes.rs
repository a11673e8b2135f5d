//! What upstreams offer besides tools, and how the bridge follows their changes.

use antiphon_mcp::{
    McpServer, RequestContext, RequestError, ServerBuilder, ServerPrompt, ServerResource,
    ServerTemplate, ServerTool,
};
use serde_json::{Value, json};

use crate::fake::{Fake, answer_list, expect, hello, tool as described};
use crate::support::duplex::Duplex;
use crate::support::{code, modern, names, text, tool};
use crate::upstreams::{Way, bridge, builder};

fn library() -> ServerBuilder {
    let books = ServerTemplate::new(
        "book:{title}",
        "book",
        |it: std::collections::BTreeMap<String, String>, _cx: RequestContext| async move {
            Ok::<_, RequestError>(format!("about {}", it["title"]))
        },
    );
    let books =
        books.unwrap().complete("title", |typed, _| async move { vec![format!("{typed}!")] });
    let review = ServerPrompt::new("review", |it: Review, _cx: RequestContext| async move {
        Ok(format!("review {}", it.title))
    });
    let review = review.complete("title", |typed, known| async move {
        vec![format!("{typed}+{}", known.get("other").cloned().unwrap_or_default())]
    });
    let shelf = ServerResource::new("shelf:1", "shelf", |_cx: RequestContext| async {
        Ok::<_, RequestError>("books")
    });
    builder().template(books).prompt(review).resource(shelf)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    title: String,
}

#[tokio::test]
async fn resources_templates_prompts_and_completions_cross() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(library()).await;
        let mut client = Duplex::start(&bridge([upstream]).await, "2025-11-25", json!({})).await;
        let read = client.call("resources/read", json!({ "uri": "shelf:1" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "books", "{way:?} {read}");
        let read = client.call("resources/read", json!({ "uri": "book:rust" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "about rust");
        let missing = client.call("resources/read", json!({ "uri": "nowhere:1" })).await;
        assert_eq!(code(&missing), -32002, "{way:?}");
        let templates = client.call("resources/templates/list", json!({})).await;
        assert_eq!(names(&templates, "resourceTemplates"), ["book"]);
        let prompt = json!({ "name": "review", "arguments": { "title": "x" } });
        let got = client.call("prompts/get", prompt).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "review x");
        for (reference, expected) in [
            (json!({ "type": "ref/prompt", "name": "review" }), "t+o"),
            (json!({ "type": "ref/resource", "uri": "book:{title}" }), "t!"),
        ] {
            let params = json!({
                "ref": reference, "argument": { "name": "title", "value": "t" },
                "context": { "arguments": { "other": "o" } },
            });
            let completed = client.call("completion/complete", params).await;
            assert_eq!(
                completed["result"]["completion"]["values"],
                json!([expected]),
                "{completed}"
            );
        }
        let mut modern_client =
            Duplex::connect(&bridge([way.serve(library()).await.1]).await).await;
        let missing =
            modern_client.call("resources/read", modern(json!({ "uri": "nowhere:1" }))).await;
        assert_eq!(code(&missing), -32602, "{way:?}");
    }
}

#[tokio::test]
async fn a_template_that_the_bridge_cannot_compare_is_listed_and_read() {
    let fake = Fake::new().await;
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "resources": {} })).await;
        answer_list(&mut wire, "resources/list", json!({ "resources": [] })).await;
        let template = json!({ "uriTemplate": "x:/a{?q,r}", "name": "search" });
        answer_list(
            &mut wire,
            "resources/templates/list",
            json!({ "resourceTemplates": [template] }),
        )
        .await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), upstream);
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let list = client.call("resources/templates/list", json!({})).await;
    assert_eq!(list["result"]["resourceTemplates"][0]["uriTemplate"], "x:/a{?q,r}");
    client.begin("resources/read", json!({ "uri": "x:/a?q=1" })).await;
    let request = expect(&mut wire, "resources/read").await;
    assert_eq!(request["params"]["uri"], "x:/a?q=1");
    wire.answer(&request, json!({ "contents": [{ "uri": "x:/a?q=1", "text": "found" }] })).await;
    assert_eq!(client.next().await["result"]["contents"][0]["text"], "found");
}

fn plain(name: &'static str) -> ServerTool {
    ServerTool::new(name, move |(): (), _cx: RequestContext| async move { name })
}

/// Waits for a notification, and returns the names of the tools.
async fn changed(client: &mut Duplex) -> Vec<String> {
    let notified = client.next().await;
    assert_eq!(notified["method"], "notifications/tools/list_changed", "{notified}");
    client.begin("tools/list", json!({})).await;
    loop {
        let message = client.next().await;
        if message["result"].is_object() {
            return names(&message, "tools");
        }
    }
}

/// Waits until the list of tools is this one.
async fn until(client: &mut Duplex, expected: &[&str]) {
    let mut known = Vec::new();
    for _ in 0..10 {
        known = changed(client).await;
        if known == expected {
            return;
        }
    }
    panic!("{known:?} instead of {expected:?}");
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    for way in Way::ALL {
        let (server, upstream) = way.serve(builder().tool(plain("a"))).await;
        let mut client = Duplex::start(&bridge([upstream]).await, "2025-11-25", json!({})).await;
        assert_eq!(names(&client.call("tools/list", json!({})).await, "tools"), ["a"]);
        followed(&server).await;
        server.add_tool(plain("b"));
        until(&mut client, &["a", "b"]).await;
        server.remove_tool("a");
        until(&mut client, &["b"]).await;
        assert_eq!(code(&client.call("tools/call", tool("a", json!({}))).await), -32602);
        assert_eq!(text(&client.call("tools/call", tool("b", json!({}))).await), "b");
    }
}

/// Waits until the bridge has asked an upstream for its changes: only then is it told.
async fn followed(server: &McpServer) {
    let mut listener = Duplex::connect(server).await;
    // The bridge asks as soon as it is built, and each call here lets it run.
    for _ in 0..50 {
        listener.call("server/discover", modern(json!({}))).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_name_that_appears_twice_stays_with_its_owner() {
    let fakes = [Fake::new().await, Fake::new().await];
    let (bridge, mut one, mut two) = tokio::join!(
        bridge([fakes[0].upstream(), fakes[1].upstream()]),
        fakes[0].offer(json!([described("a")])),
        fakes[1].offer(json!([described("b")])),
    );
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let update = async |wire: &mut Duplex, tools: Value| {
        wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
        answer_list(wire, "tools/list", json!({ "tools": tools })).await;
    };
    update(&mut two, json!([described("a"), described("c")])).await;
    assert_eq!(changed(&mut client).await, ["a", "c"]);
    client.begin("tools/call", tool("a", json!({}))).await;
    let request = expect(&mut one, "tools/call").await;
    one.answer(&request, json!({ "content": [] })).await;
    assert!(client.next().await["result"].is_object() || client.next().await["result"].is_object());
    // It goes with its owner only.
    update(&mut two, json!([described("c"), described("d")])).await;
    assert_eq!(changed(&mut client).await, ["a", "c", "d"]);
    update(&mut one, json!([])).await;
    assert_eq!(changed(&mut client).await, ["c", "d"]);
}

#[tokio::test]
async fn clients_are_told_only_of_lists_that_have_changed() {
    let fake = Fake::new().await;
    let (bridge, mut wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    for tools in [json!([described("a")]), json!([described("a"), described("b")])] {
        wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
        answer_list(&mut wire, "tools/list", json!({ "tools": tools })).await;
    }
    assert_eq!(changed(&mut client).await, ["a", "b"]);
    let ping = client.call("ping", json!({})).await;
    assert_eq!(ping["result"], json!({}), "one notification is enough");
}

#[tokio::test]
async fn updates_of_resources_reach_their_subscribers() {
    for way in Way::ALL {
        let (server, upstream) = way.serve(library()).await;
        let bridge = bridge([upstream]).await;
        // One that is listed, one of a template, and one that nobody knows.
        for uri in ["shelf:1", "book:x", "other:1"] {
            let mut clients = [
                Duplex::start(&bridge, "2025-11-25", json!({})).await,
                Duplex::start(&bridge, "2025-11-25", json!({})).await,
            ];
            for client in &mut clients {
                let subscribed = client.call("resources/subscribe", json!({ "uri": uri })).await;
                assert_eq!(subscribed["result"], json!({}));
            }
            while !server.is_subscribed(uri) {
                tokio::task::yield_now().await;
            }
            server.resource_updated(uri);
            for client in &mut clients {
                let updated = client.next().await;
                assert_eq!(updated["method"], "notifications/resources/updated", "{way:?}");
                assert_eq!(updated["params"]["uri"], uri);
                // Each update once.
                assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
                client.call("resources/unsubscribe", json!({ "uri": uri })).await;
            }
        }
        // The upstream is not kept busy with what nobody wants to know.
        crate::support::within(async {
            while server.is_subscribed("book:x") {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn an_update_of_a_part_reaches_the_subscribers_of_the_whole() {
    let fake = Fake::new().await;
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "resources": { "subscribe": true } })).await;
        answer_list(&mut wire, "resources/list", json!({ "resources": [] })).await;
        answer_list(&mut wire, "resources/templates/list", json!({ "resourceTemplates": [] }))
            .await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), upstream);
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    client.call("resources/subscribe", json!({ "uri": "dir:/a" })).await;
    let request = expect(&mut wire, "resources/subscribe").await;
    assert_eq!(request["params"]["uri"], "dir:/a");
    wire.answer(&request, json!({})).await;
    for uri in ["dir:/ab", "dir:/a/b"] {
        let params = json!({ "uri": uri });
        let updated = "notifications/resources/updated";
        wire.send(&json!({ "jsonrpc": "2.0", "method": updated, "params": params })).await;
    }
    let updated = client.next().await;
    assert_eq!(updated["params"]["uri"], "dir:/a", "{updated}");
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}
