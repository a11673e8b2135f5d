//! Results and errors of an upstream reach the client as they are.

use serde_json::{Value, json};

use crate::fake::{Fake, answer_list, expect, hello, tool as described};
use crate::support::duplex::Duplex;
use crate::support::http::Http;
use crate::support::{modern, tool};
use crate::upstreams::bridge;

const MEMBERS: &str = r#""content":[{"type":"text","text":"\u0041","x":1.50}],"isError":false,"structuredContent":{"big":18446744073709551616,"n":1.50,"e":1E2},"unknown":[0.10]"#;

/// Answers a call with a result that is a text.
async fn reply(wire: &mut Duplex, request: &Value, result: &str) {
    let id = &request["id"];
    wire.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
}

#[tokio::test]
async fn the_result_of_a_tool_keeps_its_bytes() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let result = format!(
        r#"{{"resultType":"odd","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"x"}},"own/key":2.0}},{MEMBERS}}}"#
    );
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    client
        .send_text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50,"big":18446744073709551616},"_meta":{"own/key":"v","progressToken":"mine"}}}"#)
        .await;
    let line = wire_call(&mut wire).await;
    assert!(line.contains(r#""arguments":{"n":1.50,"big":18446744073709551616}"#), "{line}");
    let request: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(request["params"]["_meta"]["own/key"], "v");
    assert_ne!(request["params"]["_meta"]["progressToken"], "mine");
    reply(&mut wire, &request, &result).await;
    let line = client.next_line().await.unwrap();
    assert_eq!(
        line,
        format!(r#"{{"jsonrpc":"2.0","result":{{"_meta":{{"own/key":2.0}},{MEMBERS}}},"id":9}}"#)
    );

    let http = Http::serve(&bridge).await;
    let call = http.modern(1, "tools/call", tool("a", json!({})));
    let call = tokio::spawn(async move { call.send().await.text().await });
    let request = expect(&mut wire, "tools/call").await;
    reply(&mut wire, &request, &result).await;
    let body = call.await.unwrap();
    let (content, rest) = MEMBERS.split_once(r#","structuredContent""#).unwrap();
    assert!(body.contains(content) && body.contains(rest), "{body}");
    let parsed: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(parsed["result"]["resultType"], "complete");
    let meta = &parsed["result"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "fake");
    assert_eq!(meta["own/key"], 2.0);
}

/// The line of the next tool call.
async fn wire_call(wire: &mut Duplex) -> String {
    loop {
        let line = wire.next_line().await.unwrap();
        if line.contains("tools/call") {
            return line;
        }
        let request: Value = serde_json::from_str(&line).unwrap();
        reply(wire, &request, "{}").await;
    }
}

#[tokio::test]
async fn resources_and_prompts_keep_their_bytes() {
    let fake = Fake::new().await;
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "resources": {}, "prompts": {} })).await;
        let prompt = json!({ "name": "p", "description": "d" });
        answer_list(&mut wire, "prompts/list", json!({ "prompts": [prompt] })).await;
        let resource = json!({ "uri": "a:1", "name": "one", "mimeType": "text/x" });
        answer_list(&mut wire, "resources/list", json!({ "resources": [resource] })).await;
        answer_list(&mut wire, "resources/templates/list", json!({ "resourceTemplates": [] }))
            .await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), upstream);
    let contents = r#""contents":[{"uri":"a:1","text":"t","odd":1.50}]"#;
    let messages = r#""messages":[{"role":"user","content":{"type":"new","n":1.50}}]"#;
    for (method, params, result) in [
        ("resources/read", json!({ "uri": "a:1" }), contents),
        ("prompts/get", json!({ "name": "p" }), messages),
    ] {
        let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
        let id = client.begin(method, params).await;
        let request = expect(&mut wire, method).await;
        reply(&mut wire, &request, &format!("{{{result},\"x\":2.0}}")).await;
        let line = client.next_line().await.unwrap();
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","result":{{{result},"x":2.0}},"id":{id}}}"#));
    }
    // A modern result says how long it may be kept.
    let mut client = Duplex::connect(&bridge).await;
    client.begin("resources/read", modern(json!({ "uri": "a:1" }))).await;
    let request = expect(&mut wire, "resources/read").await;
    reply(&mut wire, &request, &format!("{{{contents}}}")).await;
    let response = client.next().await;
    assert_eq!(response["result"]["ttlMs"], 0, "{response}");
}

#[tokio::test]
async fn errors_keep_code_message_and_data() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    for error in [
        r#"{"code":-32042,"message":"Open this","data":{"elicitations":[],"n":1.50}}"#,
        r#"{"code":-32602,"message":"bad","data":1.50}"#,
        r#"{"code":7,"message":"seven"}"#,
    ] {
        let id = client.begin("tools/call", tool("a", json!({}))).await;
        let request = expect(&mut wire, "tools/call").await;
        wire.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request["id"]))
            .await;
        let line = client.next_line().await.unwrap();
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{id}}}"#));
    }
}

#[tokio::test]
async fn a_strange_schema_is_passed_on() {
    let fake = Fake::new().await;
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "nonsense" } }, "required": 7 });
    let tools = json!([{ "name": "a", "inputSchema": schema, "outputSchema": { "type": "object", "minimum": "x" } }]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools.clone()));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let list = client.call("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"], tools);
    client.begin("tools/call", tool("a", json!({ "a": [] }))).await;
    let request = expect(&mut wire, "tools/call").await;
    assert_eq!(request["params"]["arguments"], json!({ "a": [] }));
}

#[tokio::test]
async fn descriptions_keep_their_members() {
    let fake = Fake::new().await;
    let icons = json!([{ "src": "https://a.example/i.png", "sizes": ["48x48"], "theme": "dark" }]);
    let meta = json!({ "own/key": { "n": 1.5 } });
    let hints =
        json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2025-01-01T00:00:00Z" });
    let header = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" } } });
    let tools = json!([{
        "name": "a", "title": "A", "description": "d", "icons": icons, "_meta": meta,
        "inputSchema": header, "outputSchema": { "type": "object", "x-own": [1] },
        "annotations": { "title": "T", "readOnlyHint": true, "openWorldHint": false }, "vendor": [1],
    }]);
    let resources = json!([{
        "uri": "a:1", "name": "one", "title": "One", "description": "d", "mimeType": "text/x",
        "icons": icons, "size": 7, "annotations": hints, "_meta": meta,
    }]);
    let templates = json!([{
        "uriTemplate": "a:{b}", "name": "t", "title": "T", "description": "d", "mimeType": "text/x",
        "icons": icons, "annotations": hints, "_meta": meta,
    }]);
    let prompts = json!([{
        "name": "p", "title": "P", "description": "d", "icons": icons, "_meta": meta,
        "arguments": [{ "name": "x", "title": "X", "description": "d", "required": true }],
    }]);
    let lists = [
        ("tools/list", "tools", tools),
        ("prompts/list", "prompts", prompts),
        ("resources/list", "resources", resources),
        ("resources/templates/list", "resourceTemplates", templates),
    ];
    let upstream = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "tools": {}, "prompts": {}, "resources": {} })).await;
        for (method, list, entries) in &lists {
            answer_list(&mut wire, method, json!({ *list: entries })).await;
        }
        wire
    };
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), upstream);
    let mut legacy = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let mut new = Duplex::connect(&bridge).await;
    for (method, list, entries) in &lists {
        let listed = legacy.call(method, json!({})).await;
        assert_eq!(listed["result"][*list], *entries);
        let listed = new.call(method, modern(json!({}))).await;
        assert_eq!(listed["result"][*list], *entries);
    }
    // A header that the schema asks for is checked by the bridge, as by the server itself.
    let http = Http::serve(&bridge).await;
    let call = http.modern(1, "tools/call", tool("a", json!({ "region": "eu" })));
    let refused = call.send().await;
    assert_eq!(refused.status, 400);
    let call = http.modern(1, "tools/call", tool("a", json!({ "region": "eu" })));
    let call = call.header("Mcp-Param-Region", "eu");
    let call = tokio::spawn(async move { call.send().await.text().await });
    let request = expect(&mut wire, "tools/call").await;
    wire.answer(&request, json!({ "content": [] })).await;
    assert!(call.await.unwrap().contains("complete"));
}
