//! Contracts 9 and 11: a handler whose caller has gone away is cancelled, on every wire.
//!
//! A cancelled handler is dropped at its await point, and its token is cancelled. [`Waiting`] reports
//! both.

use std::future::{IntoFuture, pending};
use std::time::Duration;

use antiphon::layer::Timeout;
use antiphon::{
    Client, ClientBuilder, Context, Dialect, Handler, Limits, Responder, Router, Server,
};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::{bound, client, dial, request, wires, within};

/// Sends the token of the call when the future of the handler is dropped.
struct Dropped(mpsc::Sender<CancellationToken>, CancellationToken);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send(self.1.clone());
    }
}

/// The method `wait`, which never ends by itself.
struct Waiting {
    router: Router,
    entered: mpsc::Receiver<()>,
    dropped: mpsc::Receiver<CancellationToken>,
}

impl Waiting {
    fn new() -> Self {
        let (enter, entered) = mpsc::channel(8);
        let (leave, dropped) = mpsc::channel(8);
        let wait = move |(): (), cx: Context| {
            let dropped = Dropped(leave.clone(), cx.cancellation().clone());
            let enter = enter.clone();
            async move {
                let _dropped = dropped;
                enter.send(()).await.unwrap();
                pending::<()>().await;
                Ok(())
            }
        };
        let router = Router::new()
            .method("wait", wait)
            .method("ping", |(): (), _: Context| async { Ok("pong") });
        Self { router, entered, dropped }
    }

    async fn entered(&mut self) {
        within(self.entered.recv()).await.unwrap();
    }

    async fn cancelled(&mut self) {
        let token = within(self.dropped.recv()).await.unwrap();
        within(token.cancelled()).await;
    }

    fn is_running(&mut self) -> bool {
        self.dropped.try_recv().is_err()
    }
}

/// The wires on which both sides can call, with Unix sockets.
fn duplex() -> Vec<String> {
    let mut wires: Vec<_> = wires().into_iter().map(str::to_owned).collect();
    if cfg!(all(feature = "unix", unix)) {
        let folder = std::env::temp_dir();
        wires.push(format!("unix:{}/vanish-{}-*", folder.display(), std::process::id()));
    }
    wires
}

/// Serves a handler until the test ends, and returns the endpoint.
fn served(server: Server, handler: impl Handler) -> String {
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(handler));
    address
}

fn wait(client: &Client) -> tokio::task::JoinHandle<Result<(), antiphon::CallError>> {
    tokio::spawn(client.call::<()>("wait", ()).into_future())
}

/// Drops a call of this client, which must cancel the handler and leave the client usable.
async fn drop_a_call(client: &Client, waiting: &mut Waiting) {
    let call = wait(client);
    waiting.entered().await;
    call.abort();
    waiting.cancelled().await;
    let pong: String = within(client.call("ping", ()).into_future()).await.unwrap();
    assert_eq!(pong, "pong");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_on_a_connection_by_the_dialect() {
    for wire in duplex() {
        for dialect in [Dialect::lsp(), Dialect::mcp()] {
            let mut waiting = Waiting::new();
            let server = bound(&wire).await.dialect(dialect.clone());
            let address = served(server, waiting.router.clone());
            let client = client().dialect(dialect).connect(&address).await.unwrap();
            drop_a_call(&client, &mut waiting).await;
        }
    }
}

/// Plain JSON-RPC has no message that could tell the server.
#[tokio::test]
async fn a_dropped_call_runs_on_without_a_dialect_until_the_connection_ends() {
    for wire in duplex() {
        let mut waiting = Waiting::new();
        let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
        let address = served(bound(&wire).await.limits(limits), waiting.router.clone());
        let client = client().connect(&address).await.unwrap();
        let call = wait(&client);
        waiting.entered().await;
        call.abort();
        let pong: String = within(client.call("ping", ()).into_future()).await.unwrap();
        assert_eq!(pong, "pong", "{wire}");
        assert!(waiting.is_running(), "{wire}");
        drop(client);
        waiting.cancelled().await;
    }
}

/// The end of input on a byte stream starts the shutdown timeout: accepted calls may still be answered.
/// The other wires report the end at once.
#[tokio::test]
async fn a_dropped_client_cancels_its_calls() {
    for wire in duplex() {
        let mut waiting = Waiting::new();
        let limits = match wire.starts_with("memory") || wire.starts_with("ws") {
            true => Limits::default(),
            false => Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() },
        };
        let address = served(bound(&wire).await.limits(limits), waiting.router.clone());
        let client = client().connect(&address).await.unwrap();
        let call = wait(&client);
        waiting.entered().await;
        call.abort();
        drop(client);
        waiting.cancelled().await;
    }
}

#[tokio::test]
async fn a_timeout_layer_cancels_the_handler() {
    let http = cfg!(feature = "http").then(|| "http://127.0.0.1:0".to_owned());
    for wire in duplex().into_iter().chain(http) {
        let mut waiting = Waiting::new();
        let handler = waiting.router.clone().layer(Timeout::new(Duration::from_millis(1)));
        let address = served(bound(&wire).await, handler);
        let client = client().connect(&address).await.unwrap();
        let call = wait(&client);
        waiting.entered().await;
        waiting.cancelled().await;
        within(call).await.unwrap().unwrap_err();
    }
}

/// The request-reply client drops the exchange with the call, and the responder is the exchange.
#[tokio::test]
async fn a_dropped_answer_of_a_responder_cancels_the_call() {
    let mut waiting = Waiting::new();
    let responder = Responder::new(waiting.router.clone());
    let client = Client::builder().over_request_reply(
        move |message: antiphon::transport::RequestMessage| {
            let responder = responder.clone();
            async move { Ok(responder.answer(message.payload).await) }
        },
    );
    drop_a_call(&client, &mut waiting).await;
}

#[cfg(feature = "http")]
mod over_http {
    use antiphon::transport::http::{HttpPolicy, HttpService};
    use tower_layer::layer_fn;

    use super::*;
    use crate::http::JSON;

    struct Plain;

    impl HttpPolicy for Plain {}

    /// Servers that take a request by different paths: the fast path, hyper by a layer, by a policy, and
    /// as a part of another application.
    async fn servers(router: &Router) -> Vec<(&'static str, String)> {
        let http = || bound("http://127.0.0.1:0");
        let axum = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mounted = format!("http://{}/rpc", axum.local_addr().unwrap());
        let app = axum::Router::new().route_service("/rpc", HttpService::new(router.clone()));
        tokio::spawn(async move { axum::serve(axum, app).await });
        let layered = http().await.http_layer(layer_fn(|inner| inner));
        vec![
            ("fast path", served(http().await, router.clone())),
            ("layer", served(layered, router.clone())),
            ("policy", served(http().await.http_policy(Plain), router.clone())),
            ("axum", mounted),
        ]
    }

    fn clients(server: &str) -> Vec<ClientBuilder> {
        match server {
            // This axum has no HTTP/2.
            "axum" => vec![client()],
            _ => vec![client(), client().http2()],
        }
    }

    #[tokio::test]
    async fn a_dropped_call_or_client_cancels_the_handler() {
        let mut waiting = Waiting::new();
        for (server, address) in servers(&waiting.router).await {
            for builder in clients(server) {
                let client = builder.connect(&address).await.unwrap();
                drop_a_call(&client, &mut waiting).await;
                // A connection that has served a call before.
                drop_a_call(&client, &mut waiting).await;
                let call = wait(&client);
                waiting.entered().await;
                drop(client);
                call.abort();
                waiting.cancelled().await;
            }
        }
    }

    /// One HTTP/2 connection carries both calls: the reset of one stream leaves the other alone.
    #[tokio::test]
    async fn a_dropped_call_cancels_only_its_own_stream() {
        let mut waiting = Waiting::new();
        let address = served(bound("http://127.0.0.1:0").await, waiting.router.clone());
        let client = client().http2().connect(&address).await.unwrap();
        let kept = wait(&client);
        waiting.entered().await;
        drop_a_call(&client, &mut waiting).await;
        assert!(waiting.is_running());
        kept.abort();
        waiting.cancelled().await;
    }

    /// The end of input is a disconnect, also if the client could still read.
    #[tokio::test]
    async fn a_closed_or_half_closed_socket_cancels_the_handler() {
        let mut waiting = Waiting::new();
        for (server, address) in servers(&waiting.router).await {
            let path = if server == "axum" { "/rpc" } else { "/" };
            let body = request(1, "wait", "[]");
            let whole = format!("content-length: {}\r\n\r\n{body}", body.len());
            let chunked = format!(
                "transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            );
            for rest in [&whole, &chunked] {
                for (more, half) in [("", true), ("", false), ("connection: close\r\n", false)] {
                    let mut stream = dial(&address).await;
                    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{more}{JSON}");
                    stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
                    waiting.entered().await;
                    stream.shutdown().await.unwrap();
                    let kept = half.then_some(stream);
                    waiting.cancelled().await;
                    drop(kept);
                }
            }
        }
    }
}
