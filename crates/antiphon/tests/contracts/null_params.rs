//! Whether `"params": null` counts as absent: by the dialect, unless the server or client sets it.

use antiphon::transport::memory::pair;
use antiphon::{Client, Connection, Context, Dialect, Router, Server};
use tokio::sync::mpsc;

use crate::support::{Raw, notification, request, within};

fn router(exits: mpsc::UnboundedSender<()>) -> Router {
    Router::new().method("shutdown", |(): (), _cx: Context| async { Ok("done") }).notification(
        "exit",
        move |(): (), _cx: Context| {
            let _ = exits.send(());
            async {}
        },
    )
}

/// Sends null params in a notification and in a request. Accepted, both reach their handlers.
async fn check(raw: &mut Raw, exits: &mut mpsc::UnboundedReceiver<()>, is_accepted: bool) {
    raw.send(&notification("exit", "null")).await;
    match is_accepted {
        true => within(exits.recv()).await.unwrap(),
        // An Invalid Request is answered, even without an id.
        false => assert_eq!(raw.next().await["error"]["code"], -32600),
    }
    raw.send(&request(1, "shutdown", "null")).await;
    let answer = raw.next().await;
    match is_accepted {
        true => assert_eq!(answer["result"], "done"),
        false => assert_eq!(answer["error"]["code"], -32600),
    }
}

/// The dialects, an explicit setting, and whether null params are accepted.
fn settings() -> [(Dialect, Option<bool>, bool); 6] {
    [
        (Dialect::plain(), None, false),
        (Dialect::plain(), Some(true), true),
        (Dialect::lsp(), None, true),
        (Dialect::lsp(), Some(false), false),
        (Dialect::lsp().strict_order(false), None, true),
        (Dialect::mcp(), None, false),
    ]
}

#[tokio::test]
async fn a_server_accepts_null_params_by_its_dialect_or_its_setting() {
    for (dialect, explicit, is_accepted) in settings() {
        let (ours, theirs) = pair();
        // The setting wins in either order.
        let server = Server::from_transport(theirs, Connection::new("pair"));
        let server = match explicit {
            Some(accept) => server.null_params(accept).dialect(dialect),
            None => server.dialect(dialect),
        };
        let (sender, mut exits) = mpsc::unbounded_channel();
        tokio::spawn(server.serve(router(sender)));
        check(&mut Raw(ours), &mut exits, is_accepted).await;
    }
}

#[tokio::test]
async fn a_client_accepts_null_params_by_its_dialect_or_its_setting() {
    for (dialect, explicit, is_accepted) in settings() {
        let (ours, theirs) = pair();
        let (sender, mut exits) = mpsc::unbounded_channel();
        let builder = Client::builder().handler(router(sender));
        let builder = match explicit {
            Some(accept) => builder.null_params(accept).dialect(dialect),
            None => builder.dialect(dialect),
        };
        let _client = builder.over(theirs);
        check(&mut Raw(ours), &mut exits, is_accepted).await;
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_http_service_accepts_null_params_by_its_dialect() {
    use antiphon::http::Request;
    use antiphon::transport::http::{HttpBody, HttpService};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    let (sender, _exits) = mpsc::unbounded_channel();
    let plain = HttpService::new(router(sender));
    let lsp = plain.clone().dialect(&Dialect::lsp());
    let again = lsp.clone().dialect(&Dialect::plain());
    for (service, expected) in [(plain, "-32600"), (lsp, r#""result":"done""#), (again, "-32600")] {
        let post = Request::post("/")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(HttpBody::from(request(1, "shutdown", "null")))
            .unwrap();
        let body = service.oneshot(post).await.unwrap().into_body();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(expected), "{body}");
    }
}
