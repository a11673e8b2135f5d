//! An MCP server behind [`Authorization`].

use std::sync::Arc;

use antiphon::http::{Request, Response};
use antiphon::{CancellationToken, Context, Router, Server};
use antiphon_mcp::auth::server::{
    Access, Authorization, ProtectedResource, TokenVerifier, require_scopes,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::http::send;

/// A server that ends with its owner.
pub(crate) struct McpServer {
    /// The URL of the MCP endpoint.
    pub(crate) url: String,
    /// The URL without a path.
    pub(crate) origin: String,
    /// Where the method `held_write` waits after it has required its scopes.
    pub(crate) hold: Arc<Hold>,
    ended: CancellationToken,
}

/// A place where a handler waits.
#[derive(Default)]
pub(crate) struct Hold {
    pub(crate) is_reached: Notify,
    pub(crate) release: Notify,
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

/// Starts a server whose resource is its own URL.
pub(crate) async fn start<V: TokenVerifier>(
    verifier: impl FnOnce(&str) -> V,
    settings: impl FnOnce(Authorization) -> Authorization,
    issuers: &[&str],
) -> McpServer {
    let server = Server::bind("http://127.0.0.1:0/mcp").await.unwrap();
    let url = server.endpoint().to_string();
    let mut resource = ProtectedResource::new(&url).unwrap().scopes(["files:read"]);
    for issuer in issuers {
        resource = resource.authorization_server(issuer).unwrap();
    }
    let authorization = settings(Authorization::new(resource, verifier(&url)));
    let server = server.http_layer(authorization);
    let ended = CancellationToken::new();
    let until = ended.clone().cancelled_owned();
    let hold = Arc::new(Hold::default());
    let router = router(hold.clone());
    tokio::spawn(async move { server.serve_until(router, until).await });
    let origin = url.strip_suffix("/mcp").unwrap().to_owned();
    McpServer { url, origin, hold, ended }
}

fn router(hold: Arc<Hold>) -> Router {
    Router::new()
        .method("whoami", |(): (), cx: Context| async move {
            let access = cx.extensions().get::<Access>();
            Ok(json!({
                "subject": access.and_then(Access::subject),
                "scopes": access.map(|access| access.scopes().to_string()),
                "identity": cx.identity().map(|identity| identity.name().to_owned()),
                "hasHeader": cx.connection().headers().contains_key("authorization"),
            }))
        })
        .method("write", |(): (), cx: Context| async move {
            require_scopes(cx.extensions().get::<Access>(), &["files:write"])?;
            Ok("written")
        })
        .method("held_write", move |(): (), cx: Context| {
            let hold = hold.clone();
            async move {
                let required = require_scopes(cx.extensions().get::<Access>(), &["files:write"]);
                hold.is_reached.notify_one();
                hold.release.notified().await;
                required?;
                Ok("written")
            }
        })
}

/// A call of a method.
pub(crate) fn call(url: &str, method: &str) -> Request<Bytes> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    Request::post(url)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))
        .unwrap()
}

/// Calls a method with a token.
pub(crate) async fn call_with(url: &str, method: &str, token: &str) -> Response<Bytes> {
    let mut request = call(url, method);
    let value = format!("Bearer {token}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    send(request).await
}

pub(crate) fn body(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}
