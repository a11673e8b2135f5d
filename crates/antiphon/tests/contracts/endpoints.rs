//! One service on every endpoint, and the limits of a raw stream.

use std::collections::HashSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{
    CallError, Client, Code, Context, Dialect, ErrorChain, ErrorObject, Limits, RawJson, Router,
    Server,
};
use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::support::{dial, line, request, serve, within};

fn service() -> Router {
    Router::new()
        .method("echo", |params: Option<RawJson>, _cx: Context| async move {
            Ok(params.unwrap_or(RawJson::NULL))
        })
        .method("where", |(): (), cx: Context| async move { Ok(cx.connection().transport) })
        .method("back", |(): (), cx: Context| async move {
            Ok(cx.peer()?.call::<String>("name", ()).await?)
        })
}

fn named() -> Router {
    Router::new().method("name", |(): (), _cx: Context| async { Ok("client") })
}

fn scratch(name: &str) -> String {
    std::env::temp_dir()
        .join(format!("antiphon-{}-{name}", std::process::id()))
        .display()
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_serves_calls() {
    let sockets = [scratch("a.sock"), scratch("b.sock")];
    let mut endpoints = vec![
        ("tcp://127.0.0.1:0".to_owned(), "tcp"),
        ("tcp+line://127.0.0.1:0".to_owned(), "tcp"),
        ("tcp+header://127.0.0.1:0".to_owned(), "tcp"),
        ("tcp+values://[::1]:0".to_owned(), "tcp"),
        (format!("unix:{}", sockets[0]), "unix"),
        (format!("unix+header:{}", sockets[1]), "unix"),
        ("memory:every".to_owned(), "memory"),
    ];
    if cfg!(feature = "ws") {
        endpoints.push(("ws://127.0.0.1:0/rpc".to_owned(), "ws"));
        endpoints.push(("http://127.0.0.1:0".to_owned(), "http"));
    }
    for (endpoint, transport) in endpoints {
        let address = serve(&endpoint, Limits::default(), service()).await;
        let client = Client::builder().handler(named()).connect(&address).await.unwrap();
        assert_eq!(client.call::<String>("where", ()).await.unwrap(), transport);
        let big = "x".repeat(300_000);
        let calls = (0..20).map(|n| client.call::<(u64, String)>("echo", (n, &big)).into_future());
        for (n, result) in within(join_all(calls)).await.into_iter().enumerate() {
            assert_eq!(result.unwrap(), (n as u64, big.clone()), "{address}");
        }
        client.notify("echo", ()).await.unwrap();
        let mut batch = client.batch();
        let slots: Vec<_> = (0..50).map(|n| batch.call::<(u64,)>("echo", (n,))).collect();
        let mut replies = within(batch.send()).await.unwrap();
        for (n, slot) in slots.into_iter().enumerate() {
            assert_eq!(replies.take(slot).unwrap(), (n as u64,));
        }
        match client.call::<String>("back", ()).await {
            Ok(name) => assert_eq!(name, "client"),
            Err(CallError::Rpc(error)) => {
                assert_eq!(transport, "http");
                assert!(error.to_string().contains("cannot call back"), "{error}");
            }
            Err(other) => panic!("{address}: {other}"),
        }
        within(client.close()).await;
    }
}

#[tokio::test]
async fn a_listener_replies_in_the_framing_of_the_client() {
    let address = serve("tcp://127.0.0.1:0", Limits::default(), service()).await;
    let mut lines = dial(&address).await;
    lines.write_all(request(1, "echo", "[1]").as_bytes()).await.unwrap();
    assert_eq!(line(&mut lines).await["id"], 1);
    let mut headers = dial(&address).await;
    let body = request(2, "echo", "[2]");
    let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    headers.write_all(message.as_bytes()).await.unwrap();
    let mut head = String::new();
    within(headers.read_line(&mut head)).await.unwrap();
    assert!(head.starts_with("Content-Length: "), "{head}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_rejected_and_the_next_one_served() {
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, service()).await;
    let mut stream = dial(&address).await;
    let big = request(1, "echo", &format!("[\"{}\"]", "x".repeat(100_000)));
    stream.write_all(format!("{big}\n{}\n", request(2, "echo", "[2]")).as_bytes()).await.unwrap();
    let refused = line(&mut stream).await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&(-32007).into(), &().into()));
    assert_eq!(line(&mut stream).await["id"], 2);
}

#[tokio::test]
async fn a_stalled_message_ends_the_connection_and_idleness_does_not() {
    let limits = Limits { stall_timeout: Duration::from_millis(40), ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, service()).await;
    let mut quiet = dial(&address).await;
    let mut stalled = dial(&address).await;
    stalled.write_all(b"{\"jsonrpc\":").await.unwrap();
    let mut rest = Vec::new();
    within(stalled.read_to_end(&mut rest)).await.unwrap();
    quiet.write_all(request(1, "echo", "[]").as_bytes()).await.unwrap();
    assert_eq!(line(&mut quiet).await["id"], 1);
}

#[tokio::test]
async fn an_idle_connection_ends_after_the_idle_timeout() {
    let limits = Limits { idle_timeout: Some(Duration::from_millis(40)), ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, service()).await;
    let mut idle = dial(&address).await;
    within(idle.read_to_end(&mut Vec::new())).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_never_reads_is_disconnected_and_others_are_served() {
    let limits = Limits {
        stall_timeout: Duration::from_millis(200),
        write_queue_bytes: 64 * 1024,
        ..Limits::default()
    };
    let address = serve("tcp://127.0.0.1:0", limits, service()).await;
    let mut deaf = dial(&address).await;
    let message = request(1, "echo", &format!("[\"{}\"]", "x".repeat(50_000)));
    // The peer writes until the server, which cannot send replies, stops reading and then ends the
    // connection.
    let ended = within(async {
        loop {
            if let Err(error) = deaf.write_all(format!("{message}\n").as_bytes()).await {
                return error;
            }
        }
    })
    .await;
    assert!(matches!(
        ended.kind(),
        std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
    ));
    let client = Client::connect(&address).await.unwrap();
    assert_eq!(client.call::<String>("where", ()).await.unwrap(), "tcp");
}

#[tokio::test]
async fn connections_over_the_limit_receive_an_error() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, service()).await;
    let mut first = dial(&address).await;
    first.write_all(request(1, "echo", "[]").as_bytes()).await.unwrap();
    line(&mut first).await;
    let mut second = dial(&address).await;
    second.write_all(request(1, "echo", "[]").as_bytes()).await.unwrap();
    line(&mut second).await;
    let mut third = dial(&address).await;
    assert_eq!(line(&mut third).await["error"]["code"], -32009);
    drop(first);
    // The server accepts another one once it has seen the end of the first.
    within(async {
        loop {
            let mut next = dial(&address).await;
            next.write_all(request(1, "echo", "[]").as_bytes()).await.unwrap();
            if line(&mut next).await["error"].is_null() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_framing_of_a_client_is_that_of_its_endpoint_or_its_dialect() {
    for (dialect, scheme, start) in [
        (Dialect::plain(), "tcp", "{"),
        (Dialect::lsp(), "tcp", "Content-Length: "),
        (Dialect::lsp(), "tcp+line", "{"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let client = Client::builder().dialect(dialect).connect(&*endpoint).await.unwrap();
        client.notify("m", ()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; start.len()];
        within(stream.read_exact(&mut head)).await.unwrap();
        assert_eq!(head, start.as_bytes(), "{endpoint}");
    }
}

#[cfg(feature = "child")]
#[tokio::test]
async fn a_child_process_is_called_and_exits() {
    // `cat` echoes its input, so our own call arrives as a call to us.
    let client = Client::builder().handler(named()).connect("exec:cat").await.unwrap();
    assert_eq!(within(client.call::<String>("name", ()).into_future()).await.unwrap(), "client");
    within(client.close()).await;
}

#[cfg(all(feature = "child", unix))]
#[tokio::test]
async fn the_exit_status_of_a_child_process_is_the_reason_of_the_end() {
    let clean = "the peer closed it";
    for (script, reason) in [
        ("read line; exit 3", "the process exited with status 3"),
        ("read line; printf \"{\"; exit 4", "the process exited with status 4"),
        ("read line; kill -9 $$", "the process was killed by signal: 9 (SIGKILL)"),
        ("read line; exit 0", clean),
        // It runs on.
        ("read line; exec >&- 2>&-; exec sleep 5", clean),
    ] {
        let client = Client::connect(format!("exec:sh -c '{script}'")).await.unwrap();
        let error = within(client.call::<()>("m", ()).into_future()).await.unwrap_err();
        assert!(matches!(error, CallError::Interrupted(_)), "{script}: {error:?}");
        let told = ErrorChain(&error).to_string();
        assert!(told.ends_with(&format!(": {reason}")), "{script}: {told}");
        if reason != clean {
            let closed = within(client.peer().unwrap().closed()).await;
            assert_eq!(closed.to_string(), reason);
        }
    }
}

#[cfg(all(feature = "child", unix))]
#[tokio::test]
async fn the_exit_status_is_the_reason_of_a_failed_write() {
    let client = Client::connect("exec:sh -c 'exec <&-; sleep 0.05; exit 5'").await.unwrap();
    let params = ["x".repeat(1_000_000)];
    let error = within(client.call::<()>("m", params).into_future()).await.unwrap_err();
    let told = ErrorChain(&error).to_string();
    assert!(told.ends_with(": the process exited with status 5"), "{told}");
}

#[cfg(feature = "child")]
#[tokio::test]
async fn a_child_process_that_does_not_exit_is_killed() {
    let stubborn = "exec:sh -c 'trap \"\" TERM; while :; do sleep 1; done'";
    let client = Client::connect(stubborn).await.unwrap();
    within(client.close()).await;
}

#[tokio::test]
async fn extensions_of_a_connection_reach_its_handlers() {
    let router = Router::new().method("tenant", |(): (), cx: Context| async move {
        Ok(cx.extensions().get::<&'static str>().copied())
    });
    let mut endpoints = vec!["tcp://127.0.0.1:0", "memory:tenants"];
    if cfg!(feature = "ws") {
        endpoints.extend(["http://127.0.0.1:0", "ws://127.0.0.1:0"]);
    }
    for endpoint in endpoints {
        let server = Server::bind(endpoint).await.unwrap();
        let server = server.on_connect(|connection| {
            connection.extensions.insert(connection.transport);
        });
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(router.clone()));
        let client = Client::connect(&address).await.unwrap();
        let tenant: Option<String> = client.call("tenant", ()).await.unwrap();
        assert_eq!(tenant.as_deref(), endpoint.split(':').next());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_a_socket_without_a_listener_is_replaced() {
    use std::os::unix::net::UnixListener;
    let file = scratch("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(Server::bind(&format!("unix:{file}")).await.is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    std::fs::remove_file(&file).unwrap();

    let socket = scratch("taken.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    assert!(Server::bind(&format!("unix:{socket}")).await.is_err());
    drop(listener);
    let server = Server::bind(&format!("unix:{socket}")).await.unwrap();
    // A file that has replaced the socket remains when the server ends.
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "precious").unwrap();
    drop(server);
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "precious");
    std::fs::remove_file(&socket).unwrap();
}

/// Connections are spread over threads, and a shutdown ends them on all threads.
#[tokio::test]
async fn a_server_on_several_threads_is_one_server() {
    let router = Router::new()
        .method("thread", |(): (), _cx: Context| async {
            Ok(std::thread::current().name().unwrap_or_default().to_owned())
        })
        .method("forever", |(): (), _cx: Context| {
            std::future::pending::<Result<(), ErrorObject>>()
        });
    let limits = Limits { shutdown_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = Server::bind("tcp://127.0.0.1:0").await.unwrap().limits(limits).threads(3);
    let address = server.endpoint().to_string();
    let stop = Arc::new(Notify::new());
    let stopped = stop.clone();
    let serving = tokio::spawn(server.serve_until(router, async move { stopped.notified().await }));
    let mut clients = Vec::new();
    let mut threads = HashSet::new();
    // Any awake thread accepts, so after some time both have accepted.
    while threads.len() < 2 {
        let client = Client::connect(&address).await.unwrap();
        threads.insert(within(client.call::<String>("thread", ()).into_future()).await.unwrap());
        clients.push(client);
    }
    let waiting: Vec<_> = clients
        .iter()
        .map(|client| tokio::spawn(client.call::<()>("forever", ()).into_future()))
        .collect();
    for client in &clients {
        within(client.call::<String>("thread", ()).into_future()).await.unwrap();
    }
    stop.notify_one();
    within(serving).await.unwrap().unwrap();
    for ended in waiting {
        let ended = within(ended).await.unwrap();
        assert!(
            matches!(&ended, Err(CallError::Rpc(error)) if error.code == Code::SERVER_BUSY),
            "{ended:?}"
        );
    }
}
