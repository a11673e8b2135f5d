//! One `#[rpc]` trait, served and called by its generated client over every transport: methods,
//! notifications, subscriptions and errors.
//!
//! It has no test harness, because for `exec:` it is its own server: with an argument, it serves on its
//! stdin and stdout.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use antiphon::{
    CallError, CancellationToken, Client, Context, Endpoint, Limits, Reconnect, Router, RpcError,
    Server,
};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A shop.
#[antiphon::rpc(namespace = "shop")]
trait Shop {
    /// The price of this many items.
    async fn price(&self, item: String, #[param(default = 1)] count: u64)
    -> Result<u64, ShopError>;

    /// The items in stock.
    async fn stock(&self) -> Result<Vec<String>, ShopError>;

    /// The transport of this call.
    async fn wire(&self, cx: Context) -> Result<String, ShopError>;

    /// Adds an item to the stock.
    #[notification]
    async fn restock(&self, item: String);

    /// This many price changes.
    #[subscription]
    async fn changes(
        &self,
        count: u64,
    ) -> Result<impl Stream<Item = u64> + Send + 'static, ShopError>;
}

#[derive(Debug, PartialEq, RpcError)]
enum ShopError {
    #[rpc(code = 7, message = "there is no such item")]
    NoSuchItem { item: String },
    #[rpc(code = 8, message = "that is too much")]
    TooMuch,
}

#[derive(Default)]
struct Corner(Mutex<Vec<String>>);

impl Shop for Corner {
    async fn price(&self, item: String, count: u64) -> Result<u64, ShopError> {
        match item.as_str() {
            "apple" => 3_u64.checked_mul(count).ok_or(ShopError::TooMuch),
            _ => Err(ShopError::NoSuchItem { item }),
        }
    }

    async fn stock(&self) -> Result<Vec<String>, ShopError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn wire(&self, cx: Context) -> Result<String, ShopError> {
        Ok(cx.connection().transport.to_owned())
    }

    async fn restock(&self, item: String) {
        self.0.lock().unwrap().push(item);
    }

    async fn changes(
        &self,
        count: u64,
    ) -> Result<impl Stream<Item = u64> + Send + 'static, ShopError> {
        if count > 1_000 {
            return Err(ShopError::TooMuch);
        }
        Ok(stream::iter(0..count))
    }
}

/// The calls that must work on every transport.
async fn visit(shop: &ShopClient, wire: &str, calls_back: bool) {
    assert_eq!(shop.wire().await.unwrap(), wire);
    assert_eq!(shop.price("apple".to_owned(), 4).await.unwrap(), 12);

    let error = shop.price("pear".to_owned(), 1).await.unwrap_err();
    assert_eq!(error.as_error(), Some(ShopError::NoSuchItem { item: "pear".to_owned() }));
    let error = shop.price("apple".to_owned(), u64::MAX).await.unwrap_err();
    assert_eq!(error.as_error(), Some(ShopError::TooMuch));

    for item in ["apple", "plum"] {
        shop.restock(item.to_owned()).await.unwrap();
    }
    assert_eq!(shop.stock().await.unwrap(), ["apple", "plum"]);

    let changes = shop.changes(100).await;
    if !calls_back {
        assert!(matches!(changes, Err(CallError::CannotCallBack(_))), "{changes:?}");
        return;
    }
    let seen: Vec<u64> = changes.unwrap().map(Result::unwrap).collect().await;
    assert!(seen.into_iter().eq(0..100));
    let refused = shop.changes(1_001).await.unwrap_err();
    assert_eq!(refused.as_error(), Some(ShopError::TooMuch));
    // A subscription that is ended before its source.
    let mut few = shop.changes(1_000).await.unwrap();
    assert_eq!(few.next().await.unwrap().unwrap(), 0);
    few.unsubscribe().await.unwrap();
}

/// Starts a server on this endpoint, and returns a client of it.
async fn over(endpoint: &str) -> Client {
    let server = Server::bind(endpoint).await.unwrap();
    let address = server.endpoint().to_string();
    #[cfg(feature = "self-signed")]
    let (server, builder) = {
        use antiphon::transport::tls::{SelfSigned, TlsClient};
        let shown = SelfSigned::new(["127.0.0.1"]).unwrap();
        let roots = TlsClient::new().extra_roots(shown.certificate_pem()).unwrap();
        let roots = roots.without_system_roots();
        (server.tls(shown.server().unwrap()), Client::builder().tls(roots))
    };
    #[cfg(not(feature = "self-signed"))]
    let builder = Client::builder();
    tokio::spawn(server.serve(Corner::default().into_router()));
    builder.connect(&address).await.unwrap()
}

fn endpoints() -> Vec<String> {
    let socket = format!("antiphon-everywhere-{}.sock", std::process::id());
    let socket = std::env::temp_dir().join(socket).display().to_string();
    let mut endpoints = vec![
        "tcp://127.0.0.1:0".to_owned(),
        "tcp+header://127.0.0.1:0".to_owned(),
        "memory:everywhere".to_owned(),
        format!("unix:{socket}"),
    ];
    if cfg!(feature = "ws") {
        endpoints.extend(["http://127.0.0.1:0", "ws://127.0.0.1:0"].map(str::to_owned));
    }
    if cfg!(all(feature = "ws", feature = "self-signed")) {
        let secure = ["https://127.0.0.1:0", "wss://127.0.0.1:0", "tls://127.0.0.1:0"];
        endpoints.extend(secure.map(str::to_owned));
    }
    endpoints
}

/// The name of the transport, as handlers see it.
fn name(endpoint: &str) -> &str {
    endpoint.split([':', '+']).next().unwrap_or_default()
}

async fn everywhere() {
    for endpoint in endpoints() {
        let shop = ShopClient::new(&over(&endpoint).await);
        visit(&shop, name(&endpoint), !endpoint.starts_with("http")).await;
        println!("ok: {endpoint}");
    }
    let itself = std::env::current_exe().unwrap();
    for framing in ["line", "header"] {
        let (command, framing) = (itself.display().to_string(), framing.parse().unwrap());
        let command = vec![command, "--serve-stdio".to_owned()];
        let endpoint = Endpoint::Exec { command, framing: Some(framing) };
        let client = Client::connect(&endpoint).await.unwrap();
        visit(&ShopClient::new(&client), "stdio", true).await;
        client.close().await;
        println!("ok: stdio+{framing}:");
    }
    returns_from_main(&itself).await;
    println!("ok: stdio: returns from `main`");
    returns_from_main_unread(&itself).await;
    println!("ok: stdio: returns from `main` although nobody reads");
    // Over a client that reconnects.
    let server = Server::bind("memory:everywhere-again").await.unwrap();
    tokio::spawn(server.serve(Corner::default().into_router()));
    let builder = Client::builder().reconnect(Reconnect::new());
    let client = builder.connect("memory:everywhere-again").await.unwrap();
    visit(&ShopClient::new(&client), "memory", true).await;
    println!("ok: reconnecting");
}

/// Stops a server on stdio whose input stays open. Its process must exit, although nothing more arrives.
async fn returns_from_main(itself: &Path) {
    let mut server = tokio::process::Command::new(itself)
        .arg("--serve-stdio-until-stopped")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    input.write_all(br#"{"jsonrpc":"2.0","method":"stop","id":1}"#).await.unwrap();
    input.write_all(b"\n").await.unwrap();
    assert!(server.wait().await.unwrap().success());
    let mut answer = String::new();
    output.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":1}\n");
    drop(input);
}

/// Stops a server on stdio whose output is not read. Its process must exit, although its last write cannot
/// end.
async fn returns_from_main_unread(itself: &Path) {
    let mut server = tokio::process::Command::new(itself)
        .arg("--serve-stdio-until-stopped")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    input
        .write_all(br#"{"jsonrpc":"2.0","method":"stop_with","params":[20000000],"id":1}"#)
        .await
        .unwrap();
    input.write_all(b"\n").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), server.wait()).await;
    assert!(ended.expect("the process does not exit").unwrap().success());
    let mut answer = String::new();
    output.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","result":"xxx"#), "nothing was written");
    drop(input);
}

#[tokio::main]
async fn main() {
    if std::env::args().any(|word| word == "--serve-stdio") {
        let server = Server::bind("stdio:").await.unwrap();
        return server.serve(Corner::default().into_router()).await.unwrap();
    }
    if std::env::args().any(|word| word == "--serve-stdio-until-stopped") {
        let stop = CancellationToken::new();
        let (stopped, stop_with) = (stop.clone().cancelled_owned(), stop.clone());
        let router = Router::new()
            .notification("stop", move |(): (), _cx: Context| {
                stop.cancel();
                async {}
            })
            .method("stop_with", move |(size,): (usize,), _cx: Context| {
                stop_with.cancel();
                async move { Ok("x".repeat(size)) }
            });
        let limits = Limits { shutdown_timeout: Duration::from_millis(200), ..Limits::default() };
        let server = Server::bind("stdio:").await.unwrap().limits(limits);
        return server.serve_until(router, stopped).await.unwrap();
    }
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, everywhere()).await.expect("the test hangs");
}
