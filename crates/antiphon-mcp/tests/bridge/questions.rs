//! Questions of an upstream to the user, the model and the application, across the bridge.

use antiphon_mcp::{McpServer, RequestContext, ServerBuilder, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::fake::{Fake, expect, tool as described};
use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::{modern_with, text, tool};
use crate::upstreams::{Way, asker, bridge, builder};

fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

fn sampled() -> Value {
    let content = json!({ "type": "text", "text": "4" });
    json!({ "role": "assistant", "content": content, "model": "gpt" })
}

/// Each question with an answer, and the text of the tool that asks.
fn cases() -> [(&'static str, &'static str, Value, &'static str); 6] {
    let (form, url) = ("elicitation/create", "elicitation/create");
    let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
    let roots = json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] });
    [
        ("form", form, ada, r#"Accept {"name":"Ada"}"#),
        ("form", form, json!({ "action": "decline" }), "Decline null"),
        ("url", url, json!({ "action": "accept" }), "Accept"),
        ("url", url, json!({ "action": "cancel" }), "Cancel"),
        ("sample", "sampling/createMessage", sampled(), "gpt"),
        ("roots", "roots/list", roots, "file:///a file:///b"),
    ]
}

#[tokio::test]
async fn a_legacy_client_is_called() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let bridge = bridge([upstream]).await;
        let mut client = Duplex::start(&bridge, "2025-11-25", capabilities()).await;
        for (name, method, answer, expected) in cases() {
            let id = client.begin("tools/call", tool(name, json!({}))).await;
            let question = client.next().await;
            assert_eq!(question["method"], method, "{way:?} {question}");
            check_question(name, &question["params"]);
            client.answer(&question, answer).await;
            let response = client.next().await;
            assert_eq!((&response["id"], text(&response)), (&json!(id), expected), "{way:?}");
        }
    }
}

fn check_question(name: &str, params: &Value) {
    match name {
        "form" => {
            assert_eq!(params["message"], "Name?");
            assert_eq!(params["requestedSchema"]["properties"]["name"]["type"], "string");
        }
        "url" => assert_eq!(params["url"], "https://pay.example/7"),
        "sample" => assert_eq!(
            (&params["maxTokens"], &params["messages"][0]["role"]),
            (&json!(10), &json!("user"))
        ),
        _ => {}
    }
}

/// Calls a tool as a modern client that answers one question.
async fn asked(http: Http, name: &str, method: &str, answer: Value) -> Value {
    let params = modern_with(tool(name, json!({})), capabilities());
    let first = http.modern_call("tools/call", params.clone()).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let requests = first["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    assert_eq!((requests.len(), &question["method"]), (1, &json!(method)));
    check_question(name, &question["params"]);
    let mut params = params;
    params["requestState"] = first["result"]["requestState"].clone();
    params["inputResponses"] = json!({ key: answer });
    http.modern_call("tools/call", params).await
}

#[tokio::test]
async fn a_modern_client_gets_questions_as_results() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let http = Http::serve(&bridge([upstream]).await).await;
        for (name, method, answer, expected) in cases() {
            let response = asked(http, name, method, answer).await;
            assert_eq!(text(&response), expected, "{way:?}");
            assert_eq!(response["result"]["resultType"], "complete");
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let bridge = bridge([upstream]).await;
        let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
        let response = client.call("tools/call", tool("form", json!({}))).await;
        let failed = response["result"]["isError"] == true || response["error"].is_object();
        assert!(failed, "{way:?} {response}");
        assert!(response.to_string().contains("elicit"), "{way:?} {response}");
    }
}

/// Two clients whose ids and tokens are equal, and whose calls ask at the same time.
async fn two_clients(bridge: &McpServer) -> [Duplex; 2] {
    let one = Duplex::start(bridge, "2025-11-25", capabilities()).await;
    let two = Duplex::start(bridge, "2025-11-25", capabilities()).await;
    [one, two]
}

#[tokio::test]
async fn a_modern_upstream_asks_the_client_of_each_call() {
    for way in [Way::ModernTcp, Way::ModernHttp] {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let [mut one, mut two] = two_clients(&bridge([upstream]).await).await;
        let form = || tool("form", json!({}));
        let ids = (one.begin("tools/call", form()).await, two.begin("tools/call", form()).await);
        assert_eq!(ids.0, ids.1);
        let (first, second) = (one.next().await, two.next().await);
        let answer = |name: &str| json!({ "action": "accept", "content": { "name": name } });
        two.answer(&second, answer("two")).await;
        one.answer(&first, answer("one")).await;
        assert_eq!(text(&one.next().await), r#"Accept {"name":"one"}"#);
        assert_eq!(text(&two.next().await), r#"Accept {"name":"two"}"#);
    }
}

#[tokio::test]
async fn a_legacy_process_asks_the_client_of_the_newest_call() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let [mut one, mut two] = two_clients(&bridge).await;
    one.begin("tools/call", tool("a", json!({ "of": 1 }))).await;
    let first = expect(&mut wire, "tools/call").await;
    two.begin("tools/call", tool("a", json!({ "of": 2 }))).await;
    let second = expect(&mut wire, "tools/call").await;
    assert_ne!(first["id"], second["id"]);
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" })).await;
    let question = two.next().await;
    two.answer(&question, json!({ "roots": [] })).await;
    assert_eq!(
        wire.next().await,
        json!({ "jsonrpc": "2.0", "id": "q", "result": { "roots": [] } })
    );
    let content = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    wire.answer(&second, content("two")).await;
    assert_eq!(text(&two.next().await), "two");
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q2", "method": "roots/list" })).await;
    let question = one.next().await;
    one.answer(&question, json!({ "roots": [] })).await;
    assert_eq!(wire.next().await["id"], "q2");
    wire.answer(&first, content("one")).await;
    assert_eq!(text(&one.next().await), "one");
    // Now there is no call, and nobody who could be asked.
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q3", "method": "roots/list" })).await;
    assert_eq!(wire.next().await["error"]["code"], -32600);
}

/// The capabilities of a client, as a tool of the upstream sees them.
fn viewer() -> ServerBuilder {
    builder().tool(ServerTool::new("view", |(): (), cx: RequestContext| async move {
        Ok::<_, ToolError>(json!(cx.client_capabilities()).to_string())
    }))
}

#[tokio::test]
async fn a_modern_upstream_knows_what_the_client_of_each_call_can_do() {
    for way in [Way::ModernTcp, Way::ModernHttp] {
        let (_server, upstream) = way.serve(viewer()).await;
        let bridge = bridge([upstream]).await;
        let view = || tool("view", json!({}));
        for offered in [json!({}), json!({ "elicitation": { "url": {} } })] {
            let mut client = Duplex::start(&bridge, "2025-11-25", offered.clone()).await;
            let seen = client.call("tools/call", view()).await;
            assert_eq!(text(&seen), offered.to_string(), "{way:?}");
        }
        // Tasks are not passed on, other extensions are.
        let extensions = json!({ "io.modelcontextprotocol/tasks": {}, "a.example/ui": { "b": 1 } });
        let mut client = Duplex::connect(&bridge).await;
        let params = modern_with(view(), json!({ "extensions": extensions }));
        let seen = client.call("tools/call", params).await;
        assert_eq!(text(&seen), r#"{"extensions":{"a.example/ui":{"b":1}}}"#, "{way:?}");
    }
}

/// A request to the model with every member, and its answer.
fn full_sampling() -> (Value, Value) {
    let used = json!({ "type": "tool_use", "id": "u", "name": "t", "input": { "n": 1.5 } });
    let result = json!({
        "type": "tool_result", "toolUseId": "u", "isError": false, "structuredContent": { "a": [1] },
        "content": [{ "type": "text", "text": "x", "annotations": { "priority": 0.5 } }],
    });
    let sampling = json!({
        "messages": [
            { "role": "assistant", "content": used },
            { "role": "user", "content": result, "_meta": { "own/key": 1 } },
        ],
        "maxTokens": 10, "systemPrompt": "s", "includeContext": "none", "temperature": 0.5,
        "stopSequences": ["x"], "metadata": { "vendor": { "a": 1 } },
        "modelPreferences": { "hints": [{ "name": "m" }], "costPriority": 0.25 },
        "tools": [{ "name": "t", "description": "d", "inputSchema": { "type": "object", "x": 1 },
                    "annotations": { "readOnlyHint": true } }],
        "toolChoice": { "mode": "required" }, "_meta": { "own/key": "v" },
    });
    let sampled = json!({
        "role": "assistant", "content": [used, used], "model": "m", "stopReason": "toolUse",
        "_meta": { "own/key": 2 }, "vendor": [1],
    });
    (sampling, sampled)
}

/// A form with every kind of field.
fn full_form() -> Value {
    json!({
        "mode": "form", "message": "Which?", "_meta": { "own/key": "v" },
        "requestedSchema": {
            "type": "object", "required": ["size"],
            "properties": {
                "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }], "default": "s" },
                "mail": { "type": "string", "format": "email", "title": "Mail", "description": "Your mail" },
                "many": { "type": "array", "minItems": 1, "items": { "type": "string", "enum": ["a", "b"] } },
                "old": { "type": "string", "enum": ["a"], "enumNames": ["A"] },
                "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 2 },
                "sure": { "type": "boolean", "default": true },
            },
        },
    })
}

#[tokio::test]
async fn questions_and_answers_keep_their_members() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
    let mut client = Duplex::start(&bridge, "2025-11-25", capabilities).await;
    client.begin("tools/call", tool("a", json!({}))).await;
    expect(&mut wire, "tools/call").await;
    let (sampling, sampled) = full_sampling();
    let filled =
        json!({ "action": "accept", "content": { "size": "s", "many": ["a"] }, "vendor": 1 });
    let url = json!({ "mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "e" });
    let roots =
        json!({ "roots": [{ "uri": "file:///a", "name": "a", "_meta": { "own/key": 1 } }] });
    for (method, params, answer) in [
        ("sampling/createMessage", sampling, sampled),
        ("elicitation/create", full_form(), filled),
        ("elicitation/create", url, json!({ "action": "decline" })),
        ("roots/list", json!({}), roots),
    ] {
        wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params }))
            .await;
        let question = client.next().await;
        assert_eq!((&question["method"], &question["params"]), (&json!(method), &params));
        client.answer(&question, answer.clone()).await;
        let answered = wire.next().await;
        assert_eq!(answered["result"], answer, "{answered}");
    }
    // An error of the client stays as it is, too.
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" })).await;
    let question = client.next().await;
    let error = json!({ "code": -1, "message": "the user has refused", "data": { "n": 1 } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    assert_eq!(wire.next().await["error"], error);
    // The server withdraws a question.
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" })).await;
    let question = client.next().await;
    let cancelled = json!({ "requestId": "q" });
    wire.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    )
    .await;
    let cancelled = client.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
}
