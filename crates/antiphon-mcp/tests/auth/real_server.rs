//! A server of tools behind [`Authorization`].

use antiphon::ErrorObject;
use antiphon::http::{Request, Response, StatusCode};
use antiphon_mcp::auth::client::{Grant, HeadlessRedirect, OAuthClient};
use antiphon_mcp::auth::server::{
    Access, Authorization, JwtVerifier, ProtectedResource, RemoteKeys, require_scopes,
};
use antiphon_mcp::auth::{Challenge, Scopes};
use antiphon_mcp::client::McpClient;
use antiphon_mcp::{McpServer, RequestContext, ServerTool, ToolError};
use bytes::Bytes;
use serde_json::json;

use crate::client_flow::REDIRECT;
use crate::support::authorization_server::AuthorizationServer;
use crate::support::http::send;
use crate::support::keys::{ISSUER, claims, key_set, signing_key};
use crate::support::mcp_server::body;

async fn call_tool(url: &str, tool: &str, token: &str) -> Response<Bytes> {
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let request = Request::post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .header("authorization", format!("Bearer {token}"))
        .body(Bytes::from(message.to_string()));
    send(request.unwrap()).await
}

#[tokio::test]
async fn a_tool_sees_the_caller_and_can_require_scopes() {
    let whoami = ServerTool::new("whoami", |(): (), cx: RequestContext| async move {
        let access = cx.rpc().extensions().get::<Access>().cloned();
        access.and_then(|access| access.subject().map(str::to_owned)).unwrap_or_default()
    });
    let write = ServerTool::new("write", |(): (), cx: RequestContext| async move {
        require_scopes(cx.rpc().extensions().get::<Access>(), &["files:write"])
            .map_err(ErrorObject::from)?;
        Ok::<_, ToolError>("written")
    });
    let mcp = McpServer::builder("test", "1").tool(whoami).tool(write).build();
    let bound = mcp.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let url = bound.endpoint().to_string();
    let key = signing_key("1");
    let resource = ProtectedResource::new(&url).unwrap().authorization_server(ISSUER).unwrap();
    let verifier = JwtVerifier::new(ISSUER, &url, key_set(&[&key]));
    let bound = bound.http_layer(Authorization::new(resource, verifier));
    tokio::spawn(bound.serve(mcp));

    let token = key.sign(&claims(&url, &json!({}))).unwrap();
    let response = call_tool(&url, "whoami", &token).await;
    assert_eq!(response.status(), StatusCode::OK, "{:?}", response.body());
    assert_eq!(body(&response)["result"]["content"][0]["text"], "ada");
    let response = call_tool(&url, "write", &token).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN, "{:?}", response.body());
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert_eq!(challenge.scope, Some(Scopes::from(["files:write"])));
    assert_eq!(body(&response)["id"], 1);
}

#[tokio::test]
async fn a_client_obtains_its_token_and_steps_up() {
    let issuer = AuthorizationServer::start().await;
    let write = ServerTool::new("write", |(): (), cx: RequestContext| async move {
        require_scopes(cx.rpc().extensions().get::<Access>(), &["files:write"])
            .map_err(ErrorObject::from)?;
        Ok::<_, ToolError>("written")
    });
    let mcp = McpServer::builder("test", "1").tool(write).build();
    let bound = mcp.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let url = bound.endpoint().to_string();
    let resource = ProtectedResource::new(&url).unwrap().authorization_server(&issuer.issuer);
    let keys = RemoteKeys::new(&format!("{}/jwks", issuer.issuer)).unwrap();
    let verifier = JwtVerifier::new(&issuer.issuer, &url, keys);
    let authorization = Authorization::new(resource.unwrap(), verifier).require(["files:read"]);
    tokio::spawn(bound.http_layer(authorization).serve(mcp));

    let user = HeadlessRedirect::new(REDIRECT);
    let tokens = OAuthClient::builder(&url, Grant::authorization_code(user)).build().unwrap();
    let client = McpClient::builder().credentials(tokens).connect(&*url).await.unwrap();
    let result = client.call_tool("write", json!({})).await.unwrap();
    assert_eq!(result.joined_text(), "written");
    let scopes: Vec<String> = issuer
        .requests("/authorize")
        .into_iter()
        .map(|mut form| form.remove("scope").unwrap())
        .collect();
    assert_eq!(scopes, ["files:read offline_access", "files:read files:write offline_access"]);
}
