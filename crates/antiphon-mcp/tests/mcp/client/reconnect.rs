//! A server that ends its connections.

use std::time::Duration;

use antiphon_mcp::client::{McpClient, McpClientBuilder, McpError, ServerNotification};
use antiphon_mcp::types::{LoggingLevel, Revision, SubscriptionFilter};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::scripted::{discovered, initialized, text};

/// One connection of a server that is played by the test.
struct Played(BufReader<TcpStream>);

impl Played {
    async fn accept(listener: &TcpListener) -> Self {
        Self(BufReader::new(listener.accept().await.unwrap().0))
    }

    /// The next message, which has this method.
    async fn read(&mut self, method: &str) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn write(&mut self, message: &Value) {
        self.0.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Answers the next request, which has this method.
    async fn answer(&mut self, method: &str, result: Value) {
        let id = self.read(method).await["id"].clone();
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    async fn legacy_handshake(&mut self) {
        let capabilities = json!({"resources": {"subscribe": true}, "logging": {}});
        self.answer("initialize", initialized("2025-11-25", &capabilities)).await;
        self.read("notifications/initialized").await;
    }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    (listener, endpoint)
}

fn legacy() -> McpClientBuilder {
    McpClient::builder().revision(Revision::V2025_11_25)
}

#[tokio::test]
async fn a_lost_connection_is_opened_again_with_what_the_server_has_kept() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.answer("logging/setLevel", json!({})).await;
        first.answer("resources/subscribe", json!({})).await;
        first.read("tools/call").await;
        drop(first);
        let mut second = Played::accept(&listener).await;
        second.legacy_handshake().await;
        second.answer("logging/setLevel", json!({})).await;
        second.answer("resources/subscribe", json!({})).await;
        second.answer("tools/call", text("again")).await;
        second
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    client.set_level(LoggingLevel::Warning).await.unwrap();
    let filter = SubscriptionFilter::new().with_resource_subscriptions(vec!["a:b".to_owned()]);
    let mut changes = client.listen(filter).await.unwrap();
    // The server has received it, and may have executed it.
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("may have been executed"), "{error}");
    // This one cannot be sent until there is a new session.
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "again");
    assert_eq!(changes.next().await.unwrap().unwrap(), ServerNotification::Resumed);
    drop(server.await.unwrap());
    client.close().await;
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_call_does_not_lose_what_the_server_has_kept() {
    let (listener, endpoint) = listener().await;
    let (asked, is_asked) = oneshot::channel();
    let (dropped, is_dropped) = oneshot::channel();
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.answer("logging/setLevel", json!({})).await;
        first.read("tools/call").await;
        drop(first);
        let mut second = Played::accept(&listener).await;
        second.legacy_handshake().await;
        let id = second.read("logging/setLevel").await["id"].clone();
        asked.send(()).unwrap();
        is_dropped.await.unwrap();
        // The client has not cancelled the request of the dropped call.
        second.write(&json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
        second.answer("tools/call", text("again")).await;
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    client.set_level(LoggingLevel::Warning).await.unwrap();
    assert!(client.call_tool("t", ()).await.is_err());
    tokio::select! {
        _ = client.call_tool("t", ()) => panic!("the call waits for the new session"),
        asked = is_asked => asked.unwrap(),
    }
    dropped.send(()).unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "again");
    server.await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_is_dropped_forgets_nothing() {
    let (listener, endpoint) = listener().await;
    let (asked, is_asked) = oneshot::channel();
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.read("tools/call").await;
        drop(first);
        let mut second = Played::accept(&listener).await;
        second.read("initialize").await;
        asked.send(()).unwrap();
        (listener, second)
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    let known = client.server_info();
    assert!(known.is_some());
    assert!(client.call_tool("t", ()).await.is_err());
    tokio::select! {
        _ = client.call_tool("t", ()) => panic!("the call waits for the new session"),
        asked = is_asked => asked.unwrap(),
    }
    assert_eq!(client.server_info(), known);
    // The connection of the dropped handshake ends with the client, although the server has not answered.
    drop(client);
    let (_listener, mut second) = server.await.unwrap();
    assert_eq!(second.0.read_to_string(&mut String::new()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_closed_client_does_not_connect_again() {
    let (listener, endpoint) = listener().await;
    let (asked, is_asked) = oneshot::channel();
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.read("tools/call").await;
        drop(first);
        let mut second = Played::accept(&listener).await;
        second.read("initialize").await;
        asked.send(()).unwrap();
        (listener, second)
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    assert!(client.call_tool("t", ()).await.is_err());
    let closing = client.clone();
    let close = async {
        is_asked.await.unwrap();
        closing.close().await;
    };
    let (outcome, ()) = tokio::join!(client.call_tool("t", ()).into_future(), close);
    assert!(outcome.unwrap_err().to_string().contains("closed"));
    let (listener, _second) = server.await.unwrap();
    let third = listener.into_std().unwrap().accept();
    assert_eq!(third.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_probe_without_an_answer_does_not_keep_the_connection_open() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut connection = Played::accept(&listener).await;
        connection.read("server/discover").await;
        connection.legacy_handshake().await;
        // Returns when the client closes the connection.
        connection.0.read_to_string(&mut String::new()).await.unwrap();
    });
    let builder = McpClient::builder().without_timeout().probe_timeout(Duration::ZERO);
    drop(builder.connect(&*endpoint).await.unwrap());
    server.await.unwrap();
}

#[tokio::test]
async fn many_calls_open_one_connection() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.read("tools/call").await;
        drop(first);
        let mut second = Played::accept(&listener).await;
        second.legacy_handshake().await;
        for _ in 0..3 {
            second.answer("tools/call", text("hello")).await;
        }
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    assert!(client.call_tool("t", ()).await.is_err());
    let call = || async { client.call_tool("t", ()).await.unwrap().joined_text() };
    assert_eq!(
        tokio::join!(call(), call(), call()),
        ("hello".into(), "hello".into(), "hello".into())
    );
    server.await.unwrap();
}

#[tokio::test]
async fn a_subscription_opens_the_connection_again() {
    let acknowledge = |id: &Value| {
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "notifications": {"toolsListChanged": true},
            "_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
    };
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut last = None;
        for is_lost in [true, false] {
            let mut connection = Played::accept(&listener).await;
            connection.answer("server/discover", discovered(&json!({}))).await;
            let id = connection.read("subscriptions/listen").await["id"].clone();
            connection.write(&acknowledge(&id)).await;
            last = (!is_lost).then_some(connection);
        }
        last
    });
    let client = McpClient::connect(&endpoint).await.unwrap();
    let filter = SubscriptionFilter::new().with_tools_list_changed(true);
    let mut changes = client.listen(filter).await.unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap(), ServerNotification::Resumed);
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_does_not_return_is_an_error() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        drop(listener);
        first.legacy_handshake().await;
        first.read("tools/call").await;
    });
    let client = legacy().connect(&*endpoint).await.unwrap();
    let mut changes = client.listen(SubscriptionFilter::list_changes()).await.unwrap();
    assert!(client.call_tool("t", ()).await.is_err());
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::Connect(_)), "{error}");
    assert!(matches!(changes.next().await, Some(Err(McpError::Connect(_)))));
    assert!(changes.next().await.is_none());
    assert_eq!(client.server_info().unwrap().name, "scripted", "still known");
    server.await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_reconnect_fails() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut first = Played::accept(&listener).await;
        first.legacy_handshake().await;
        first.read("tools/call").await;
        listener
    });
    let client = legacy().reconnect(false).connect(&*endpoint).await.unwrap();
    let mut changes = client.listen(SubscriptionFilter::list_changes()).await.unwrap();
    for reason in ["may have been executed", "is closed"] {
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(changes.next().await.is_none());
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_handshake_that_fails_has_executed_no_call() {
    let error = McpClient::connect("exec:false").await.unwrap_err();
    let chain = antiphon::ErrorChain(&error).to_string();
    assert!(chain.contains("during the handshake"), "{chain}");
    assert!(chain.contains("exited with status 1"), "{chain}");
    assert!(!chain.contains("executed"), "{chain}");
}

#[tokio::test]
async fn a_handshake_is_never_cancelled() {
    let (listener, endpoint) = listener().await;
    let server = tokio::spawn(async move {
        let mut connection = Played::accept(&listener).await;
        connection.read("initialize").await;
        let mut rest = String::new();
        connection.0.read_to_string(&mut rest).await.unwrap();
        rest
    });
    let builder = legacy().timeout(std::time::Duration::from_millis(50));
    let error = builder.connect(&*endpoint).await.unwrap_err();
    assert!(matches!(error, McpError::TimedOut(_)), "{error}");
    assert_eq!(server.await.unwrap(), "");
}

/// A process that a signal ends is started again.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_is_started_again() {
    let program = std::env::current_exe().unwrap();
    // target/PROFILE/deps/mcp-HASH
    let server = program.ancestors().nth(2).unwrap().join("examples/everything_server");
    let folder = std::env::temp_dir().join(format!("antiphon-mcp-restart-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (script, pid) = (folder.join("server.sh"), folder.join("pid"));
    let lines = format!("echo $$ > {}\nexec {} stdio:\n", pid.display(), server.display());
    std::fs::write(&script, lines).unwrap();
    let client = legacy().connect(&*format!("exec:sh {}", script.display())).await.unwrap();
    let mut changes = client.listen(SubscriptionFilter::list_changes()).await.unwrap();
    let first = std::fs::read_to_string(&pid).unwrap();
    let killed = std::process::Command::new("kill").args(["-9", first.trim()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(changes.next().await.unwrap().unwrap(), ServerNotification::Resumed);
    assert!(!client.list_tools().await.unwrap().is_empty());
    assert_ne!(std::fs::read_to_string(&pid).unwrap(), first);
    client.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
}
