//! Completions across the bridge.

use antiphon_mcp::{RequestContext, RequestError, ServerBuilder, ServerPrompt, ServerTemplate};
use serde_json::{Value, json};

use crate::fake::{Fake, answer_list, expect, hello};
use crate::support::duplex::Duplex;
use crate::support::{code, modern};
use crate::upstreams::{Way, bridge, builder};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    #[expect(dead_code, reason = "only its name matters")]
    title: String,
}

/// A prompt and a template with more values than one result may have.
fn many() -> ServerBuilder {
    let values = || (0..150).map(|value| value.to_string()).collect::<Vec<_>>();
    let review =
        ServerPrompt::new("review", |_: Review, _cx: RequestContext| async { Ok("review") });
    let review = review.complete("title", move |_, _| async move { values() });
    type Variables = std::collections::BTreeMap<String, String>;
    let books = ServerTemplate::new("book:{title}", "book", |_: Variables, _| async {
        Ok::<_, RequestError>("a book")
    });
    let books = books.unwrap().complete("title", move |_, _| async move { values() });
    builder().prompt(review).template(books)
}

fn params(reference: &Value) -> Value {
    json!({ "ref": reference, "argument": { "name": "title", "value": "t" } })
}

#[tokio::test]
async fn the_number_of_all_values_crosses() {
    let references = [
        json!({ "type": "ref/prompt", "name": "review" }),
        json!({ "type": "ref/resource", "uri": "book:{title}" }),
    ];
    for way in Way::ALL {
        let (_server, upstream) = way.serve(many()).await;
        let bridge = bridge([upstream]).await;
        let mut legacy = Duplex::start(&bridge, "2025-11-25", json!({})).await;
        let mut new = Duplex::connect(&bridge).await;
        for reference in &references {
            for completed in [
                legacy.call("completion/complete", params(reference)).await,
                new.call("completion/complete", modern(params(reference))).await,
            ] {
                let completion = &completed["result"]["completion"];
                assert_eq!(completion["total"], 150, "{way:?} {completed}");
                assert_eq!(completion["hasMore"], true, "{way:?}");
                assert_eq!(completion["values"].as_array().unwrap().len(), 100, "{way:?}");
            }
        }
    }
}

#[tokio::test]
async fn params_results_and_errors_are_passed_on() {
    let fake = Fake::new().await;
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "prompts": {}, "completions": {} })).await;
        answer_list(&mut wire, "prompts/list", json!({ "prompts": [{ "name": "p" }] })).await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream().prefix("x_")]), upstream);
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let mut params = params(&json!({ "type": "ref/prompt", "name": "x_p" }));
    params["context"] = json!({ "arguments": { "other": "o" } });
    params["_meta"] = json!({ "own/key": 1.5 });

    // The prompt does not list this argument: the upstream decides.
    client.begin("completion/complete", params.clone()).await;
    let request = expect(&mut wire, "completion/complete").await;
    assert_eq!(request["params"]["ref"], json!({ "type": "ref/prompt", "name": "p" }));
    for member in ["argument", "context", "_meta"] {
        assert_eq!(request["params"][member], params[member]);
    }
    let result = r#"{"_meta":{"own/key":2.0},"completion":{"values":["a"],"total":3.0,"odd":1.50},"x":0.10}"#;
    wire.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]))
        .await;
    let line = client.next_line().await.unwrap();
    assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","result":{result},"id":2}}"#));

    client.begin("completion/complete", params).await;
    let request = expect(&mut wire, "completion/complete").await;
    let error = json!({ "code": -32602, "message": "unknown argument", "data": [1] });
    wire.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    assert_eq!(client.next().await["error"], error);
}

#[tokio::test]
async fn a_completion_is_cancelled_at_the_upstream() {
    let fake = Fake::new().await;
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "prompts": {}, "completions": {} })).await;
        answer_list(&mut wire, "prompts/list", json!({ "prompts": [{ "name": "p" }] })).await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), upstream);
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    let id = client.begin("completion/complete", params(&reference)).await;
    let request = expect(&mut wire, "completion/complete").await;
    let cancelled =
        crate::support::notification("notifications/cancelled", json!({ "requestId": id }));
    client.send(&cancelled).await;
    let cancelled = wire.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // A completion that nobody knows is refused by the bridge itself.
    let unknown = json!({ "type": "ref/prompt", "name": "q" });
    assert_eq!(code(&client.call("completion/complete", params(&unknown)).await), -32602);
}
