//! The client over HTTP+SSE, the transport of revision 2024-11-05.

use std::sync::{Arc, Mutex};

use antiphon::http::Method;
use antiphon_mcp::client::{McpClient, McpError};
use antiphon_mcp::types::Revision;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::http_server::{HttpScript, event, open_events, status};
use super::scripted::{initialized, text};

/// A server that answers on its one stream.
async fn server(address: &'static str) -> HttpScript {
    let stream = Arc::<Mutex<Option<UnboundedSender<String>>>>::default();
    HttpScript::start(move |request| {
        let stream = stream.clone();
        async move {
            if request.method == Method::GET {
                let (sender, response) = open_events();
                sender.send(format!("event: endpoint\ndata: {address}\n\n")).unwrap();
                *stream.lock().unwrap() = Some(sender);
                return response;
            }
            if !request.path.starts_with("/messages") {
                return status(405);
            }
            let answer = |result: Value| {
                let message = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
                let sender = stream.lock().unwrap();
                sender
                    .as_ref()
                    .unwrap()
                    .send(format!("event: message\n{}", event(&message)))
                    .unwrap();
            };
            match request.name() {
                "initialize" => answer(initialized("2024-11-05", &json!({}))),
                "tools/call" if request.body["params"]["name"] == "lose" => {
                    *stream.lock().unwrap() = None;
                }
                "tools/call" => answer(text("ok")),
                _ => {}
            }
            status(202)
        }
    })
    .await
}

#[tokio::test]
async fn it_is_the_last_resort_and_starts_again_after_a_loss() {
    let server = server("/messages?session=1").await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    assert!(client.era().http_sse);
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
    let error = client.call_tool("lose", ()).await.unwrap_err();
    assert!(matches!(error, McpError::Interrupted(_)), "{error}");
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
    assert_eq!(server.named("GET").len(), 2);
    // What was found out saves the attempts.
    let count = server.seen().len();
    let again = McpClient::builder().assume(client.era()).connect(&*server.url).await.unwrap();
    assert_eq!(server.seen()[count].name(), "GET");
    assert!(again.era().http_sse);
}

#[tokio::test]
async fn messages_are_not_sent_to_another_server() {
    let server = server("http://127.0.0.2:1/messages").await;
    let error = McpClient::connect(&server.url).await.unwrap_err();
    assert!(matches!(error, McpError::Status { .. }), "{error}");
    assert!(server.seen().iter().all(|request| request.path == "/mcp"));
}
