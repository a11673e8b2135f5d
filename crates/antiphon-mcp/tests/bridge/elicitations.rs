//! The end of an elicitation by URL, across the bridge.

use antiphon_mcp::types::ElicitUrlParams;
use antiphon_mcp::{RequestContext, ServerBuilder, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::fake::{Fake, expect, tool as described};
use crate::support::duplex::Duplex;
use crate::support::http::Http;
use crate::support::{modern_with, text, tool};
use crate::upstreams::{Way, bridge, builder};

fn capabilities() -> Value {
    json!({ "elicitation": { "url": {} } })
}

/// A tool whose user opens a URL and finishes there during the call.
fn payment() -> ServerBuilder {
    builder().tool(ServerTool::new("pay", |(): (), cx: RequestContext| async move {
        let url = ElicitUrlParams::new("Pay?", "https://pay.example/7");
        let answer = cx.elicit_url(url.with_elicitation_id("e-7")).await?;
        cx.elicitation_completed("e-7").await;
        Ok::<_, ToolError>(format!("{:?}", answer.action))
    }))
}

#[tokio::test]
async fn a_legacy_client_hears_of_the_end_before_the_result() {
    for way in [Way::LegacyTcp, Way::LegacyHttp] {
        let (_server, upstream) = way.serve(payment()).await;
        let mut client =
            Duplex::start(&bridge([upstream]).await, "2025-11-25", capabilities()).await;
        client.begin("tools/call", tool("pay", json!({}))).await;
        let question = client.next().await;
        assert_eq!(question["params"]["elicitationId"], "e-7", "{way:?} {question}");
        client.answer(&question, json!({ "action": "accept" })).await;
        let ended = client.next().await;
        assert_eq!(ended["method"], "notifications/elicitation/complete", "{way:?} {ended}");
        assert_eq!(ended["params"], json!({ "elicitationId": "e-7" }));
        assert_eq!(text(&client.next().await), "Accept");
    }
}

#[tokio::test]
async fn a_modern_client_gets_only_what_its_revision_has() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(payment()).await;
        let http = Http::serve(&bridge([upstream]).await).await;
        let mut params = modern_with(tool("pay", json!({})), capabilities());
        let first = http.modern_call("tools/call", params.clone()).await;
        let (key, question) =
            first["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert!(question["params"]["elicitationId"].is_null(), "{way:?} {question}");
        params["requestState"] = first["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: { "action": "accept" } });
        // It is the only message of the response.
        assert_eq!(text(&http.modern_call("tools/call", params).await), "Accept", "{way:?}");
    }
}

#[tokio::test]
async fn the_end_after_an_error_reaches_the_client_of_the_call() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let mut one = Duplex::start(&bridge, "2025-11-25", capabilities()).await;
    let mut two = Duplex::start(&bridge, "2025-11-25", capabilities()).await;
    for (client, id) in [(&mut one, "e-1"), (&mut two, "e-2")] {
        client.begin("tools/call", tool("a", json!({}))).await;
        let request = expect(&mut wire, "tools/call").await;
        let page = json!({ "mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": id });
        let data = json!({ "elicitations": [page] });
        let error = json!({ "code": -32042, "message": "Log in first", "data": data });
        wire.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
        assert_eq!(client.next().await["error"], error);
    }
    for id in ["nobody", "e-2", "e-1", "e-1"] {
        wire.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
            "params": { "elicitationId": id },
        }))
        .await;
    }
    for (client, id) in [(&mut one, "e-1"), (&mut two, "e-2")] {
        let ended = client.next().await;
        assert_eq!(ended["method"], "notifications/elicitation/complete");
        assert_eq!(ended["params"], json!({ "elicitationId": id }));
        // Each once, and nobody gets that of another client.
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    }
}
