//! The HTTP service inside a real axum application: shutdown, remote addresses, rate limits.

use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use antiphon::http::Request;
use antiphon::layer::{Quota, RateLimit};
use antiphon::transport::http::{HttpBody, HttpPolicy, HttpService};
use antiphon::{CallError, Client, Code, Context, Endpoint, Handler as _, Limits, Router};
use bytes::BytesMut;
use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tower::Service as _;
use tower_http::limit::RequestBodyLimitLayer;

use crate::http::{JSON, post};
use crate::support::{Holding, holding, refused_at_shutdown, request, within};

/// An axum application that serves `/rpc`. It stops gracefully when `stop` is sent or dropped.
struct App {
    endpoint: Endpoint,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

/// Starts the application on a free port.
async fn serve(rpc: HttpService) -> App {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app: axum::Router = axum::Router::new().route_service("/rpc", rpc.clone());
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = async move {
        let _ = stopped.await;
        rpc.shutdown().await;
    };
    let serving =
        tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stopping).into_future());
    let endpoint = format!("http://127.0.0.1:{port}/rpc").parse().unwrap();
    App { endpoint, stop, serving }
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_graceful_shutdown_finishes_the_calls_of_a_websocket_and_closes_it() {
    let Holding { router, mut entered, release, .. } = holding();
    let App { endpoint, stop, serving } = serve(HttpService::new(router)).await;
    let client = Client::connect(endpoint.as_ws()).await.unwrap();
    let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    stop.send(()).unwrap();
    let refused = within(refused_at_shutdown(&client)).await;
    assert!(matches!(&refused, CallError::Rpc(error) if error.code.0 == -32009), "{refused}");
    let late = Client::connect(endpoint.as_ws()).await.unwrap_err();
    assert!(format!("{late:?}").contains("503"), "a new WebSocket is refused: {late:?}");
    let late = Client::connect(&endpoint).await.unwrap();
    let late = within(late.call::<String>("nowhere", ()).into_future()).await.unwrap_err();
    assert!(format!("{late:?}").contains("shutting down"), "a new POST is refused: {late:?}");
    assert!(!serving.is_finished(), "the shutdown waits for the call");
    release.notify_one();
    assert_eq!(within(held).await.unwrap().unwrap(), "held");
    within(client.peer().unwrap().closed()).await;
    within(serving).await.unwrap().unwrap();
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_graceful_shutdown_over_its_timeout_cancels() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let app = serve(HttpService::with_limits(router, limits)).await;
    let mut calls = Vec::new();
    for endpoint in [app.endpoint.as_ws(), app.endpoint] {
        let client = Client::connect(endpoint).await.unwrap();
        let call = client.call::<String>("hold", ()).into_future();
        calls.push(tokio::spawn(async move {
            let _open = client;
            call.await
        }));
        within(entered.recv()).await.unwrap();
    }
    app.stop.send(()).unwrap();
    for call in calls {
        let refused = within(call).await.unwrap().unwrap_err();
        assert!(format!("{refused:?}").contains("shutting down"), "{refused:?}");
        within(gone.recv()).await.unwrap();
    }
    within(app.serving).await.unwrap().unwrap();
}

/// A shutdown without any connection ends at once, and a second one too.
#[tokio::test]
async fn a_service_can_be_shut_down_twice() {
    let service = HttpService::new(Router::new());
    within(service.shutdown()).await;
    within(service.clone().shutdown()).await;
}

/// The response to one call from this local address.
async fn call_from(local: &str, endpoint: &Endpoint, method: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{local}:0").parse().unwrap()).unwrap();
    let server = endpoint.authority().unwrap().to_string().parse().unwrap();
    let mut stream: TcpStream = within(socket.connect(server)).await.unwrap();
    let path = endpoint.path().unwrap();
    let message = post(path, JSON, &request(1, method, "[]")).replace("{host}", "localhost");
    stream.write_all(message.as_bytes()).await.unwrap();
    let mut response = String::new();
    within(stream.read_to_string(&mut response)).await.unwrap();
    response
}

fn whereabouts() -> Router {
    Router::new().method("remote", |(): (), cx: Context| async move {
        Ok(cx.connection().remote.map(|remote| remote.ip().to_string()))
    })
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn the_remote_address_is_the_one_that_axum_knows() {
    let app = serve(HttpService::new(whereabouts())).await;
    for local in ["127.0.0.1", "127.0.0.2"] {
        let response = call_from(local, &app.endpoint, "remote").await;
        assert!(response.contains(&format!("\"result\":\"{local}\"")), "{response}");
    }
    if cfg!(feature = "ws") {
        let client = Client::connect(app.endpoint.as_ws()).await.unwrap();
        let remote = within(client.call::<String>("remote", ()).into_future()).await;
        assert_eq!(remote.unwrap(), "127.0.0.1");
    }
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn each_address_has_its_own_rate_limit() {
    let limit = RateLimit::new(Quota::new(1, Duration::from_secs(600)));
    let app = serve(HttpService::new(whereabouts().layer(limit))).await;
    let limited = format!("\"code\":{}", Code::RATE_LIMITED.0);
    for local in ["127.0.0.1", "127.0.0.2"] {
        let first = call_from(local, &app.endpoint, "remote").await;
        assert!(first.contains("\"result\""), "{local} has a bucket of its own: {first}");
        let second = call_from(local, &app.endpoint, "remote").await;
        assert!(second.contains(&limited), "{local} has used its bucket: {second}");
    }
}

#[tokio::test]
async fn the_application_can_set_the_remote_address() {
    let rpc = HttpService::new(whereabouts())
        .on_connect(|connection| connection.remote = Some(([192, 0, 2, 7], 1).into()));
    let app = serve(rpc).await;
    let response = call_from("127.0.0.1", &app.endpoint, "remote").await;
    assert!(response.contains(r#""result":"192.0.2.7""#), "{response}");
}

/// A program keeps a clone to shut the service down. The order of clone and setting has no effect.
#[tokio::test]
async fn a_setting_after_a_clone_is_not_lost() {
    let rpc = HttpService::new(whereabouts());
    let kept = rpc.clone();
    let rpc = rpc.on_connect(|connection| connection.remote = Some(([192, 0, 2, 7], 1).into()));
    let app = serve(rpc).await;
    let response = call_from("127.0.0.1", &app.endpoint, "remote").await;
    assert!(response.contains(r#""result":"192.0.2.7""#), "{response}");
    // The clone ends the other, too.
    within(kept.shutdown()).await;
    let refused = call_from("127.0.0.1", &app.endpoint, "remote").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    app.stop.send(()).unwrap();
    within(app.serving).await.unwrap().unwrap();
}

/// Neither a running call nor a refusal keeps the connection of a client: the server ends it.
#[tokio::test]
async fn a_shutdown_ends_the_connections_that_clients_keep() {
    let Holding { router, mut entered, release, .. } = holding();
    let rpc = HttpService::new(router);
    let app = serve(rpc.clone()).await;
    let server = app.endpoint.authority().unwrap().to_string();
    let call = |method: &str| {
        let message = post("/rpc", JSON, &request(1, method, "[]")).replace("{host}", "localhost");
        message.replace("connection: close\r\n", "").into_bytes()
    };
    let mut resting = within(TcpStream::connect(&server)).await.unwrap();
    resting.write_all(&call("nowhere")).await.unwrap();
    let mut response = BytesMut::new();
    while !response.ends_with(b"}") {
        within(resting.read_buf(&mut response)).await.unwrap();
    }
    let client = Client::connect(&app.endpoint).await.unwrap();
    let missing = client.call::<()>("nowhere", ()).await.unwrap_err();
    assert!(missing.to_string().contains("-32601"), "{missing}");
    let mut running = within(TcpStream::connect(&server)).await.unwrap();
    running.write_all(&call("hold")).await.unwrap();
    within(entered.recv()).await.unwrap();
    // Only the service stops. The application goes on to accept connections.
    let mut shutdown = Box::pin(async move { rpc.shutdown().await });
    assert!(futures_util::poll!(&mut shutdown).is_pending());
    resting.write_all(&call("nowhere")).await.unwrap();
    release.notify_one();
    for (mut stream, status) in [(resting, "503"), (running, "200")] {
        let mut response = String::new();
        within(stream.read_to_string(&mut response)).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
        assert!(response.contains("connection: close\r\n"), "{response}");
    }
    for _ in 0..3 {
        let refused = within(client.call::<()>("nowhere", ()).into_future()).await.unwrap_err();
        assert!(format!("{refused:?}").contains("shutting down"), "{refused:?}");
    }
}

#[tokio::test]
async fn no_handler_starts_after_the_shutdown() {
    for policy in [false, true] {
        let Holding { router, mut entered, .. } = holding();
        let rpc = HttpService::new(router);
        let rpc = if policy { rpc.policy(DefaultPolicy) } else { rpc };
        let app = serve(rpc.clone()).await;
        let server = app.endpoint.authority().unwrap().to_string();
        let mut stream = within(TcpStream::connect(server)).await.unwrap();
        let message = post("/rpc", JSON, &request(1, "hold", "[]")).replace("{host}", "localhost");
        let (first, last) = message.split_at(message.len() - 1);
        stream.write_all(first.as_bytes()).await.unwrap();
        // A second request shows that the server has had its turns with the first.
        call_from("127.0.0.1", &app.endpoint, "nowhere").await;
        within(rpc.shutdown()).await;
        stream.write_all(last.as_bytes()).await.unwrap();
        let mut response = String::new();
        within(stream.read_to_string(&mut response)).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 503"), "{response}");
        assert!(entered.try_recv().is_err());
        app.stop.send(()).unwrap();
        within(app.serving).await.unwrap().unwrap();
    }
}

/// A policy that changes nothing.
struct DefaultPolicy;

impl HttpPolicy for DefaultPolicy {}

#[tokio::test]
async fn a_graceful_shutdown_finishes_the_calls_of_http2() {
    let Holding { router, mut entered, release, .. } = holding();
    let App { endpoint, stop, serving } = serve(HttpService::new(router)).await;
    let client = Client::builder().http2().connect(&endpoint).await.unwrap();
    let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    stop.send(()).unwrap();
    within(async {
        loop {
            match client.call::<String>("nowhere", ()).await.unwrap_err() {
                CallError::Rpc(error) if error.code.0 == -32601 => {}
                refused => return assert!(format!("{refused:?}").contains("shutting down")),
            }
        }
    })
    .await;
    assert!(!serving.is_finished(), "the shutdown waits for the call");
    release.notify_one();
    assert_eq!(within(held).await.unwrap().unwrap(), "held");
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn each_of_two_shutdowns_waits_for_the_running_call() {
    let Holding { router, mut entered, release, .. } = holding();
    let rpc = HttpService::new(router);
    let app = serve(rpc.clone()).await;
    let client = Client::connect(&app.endpoint).await.unwrap();
    let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    let mut shutdowns = [(); 2].map(|()| {
        let rpc = rpc.clone();
        Box::pin(async move { rpc.shutdown().await })
    });
    for shutdown in &mut shutdowns {
        assert!(futures_util::poll!(shutdown).is_pending());
    }
    // A shutdown that is dropped does not end the other one.
    let [dropped, shutdown] = shutdowns;
    drop(dropped);
    release.notify_one();
    within(shutdown).await;
    assert_eq!(within(held).await.unwrap().unwrap(), "held");
}

/// The handlers are inside their first poll, on another thread, when the shutdown begins.
#[tokio::test]
async fn a_shutdown_waits_for_a_handler_that_has_not_awaited_yet() {
    for policy in [false, true] {
        let (entered, mut has_entered) = mpsc::channel(1);
        let (go, signal) = std::sync::mpsc::channel::<()>();
        let signal = Mutex::new(signal);
        let router = Router::new().method("busy", move |(): (), _cx: Context| {
            entered.try_send(()).unwrap();
            let _ = signal.lock().unwrap().recv();
            async { Ok("done") }
        });
        let rpc = HttpService::new(router);
        let mut rpc = if policy { rpc.policy(DefaultPolicy) } else { rpc };
        let shutdown = rpc.clone();
        let mut shutdown = Box::pin(async move { shutdown.shutdown().await });
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let body = HttpBody::from(request(1, "busy", "[]"));
            let request = Request::post("/").header("content-type", "application/json");
            let request = request.header("host", "localhost").body(body).unwrap();
            runtime.unwrap().block_on(rpc.call(request)).unwrap().status()
        });
        within(has_entered.recv()).await.unwrap();
        assert!(futures_util::poll!(&mut shutdown).is_pending());
        drop(go);
        within(shutdown).await;
        assert_eq!(thread.join().unwrap(), 200);
    }
}

/// The service was shut down before the application accepts its first connection.
#[tokio::test]
async fn a_shutdown_before_the_first_connection_refuses_all() {
    let rpc = HttpService::new(whereabouts());
    within(rpc.shutdown()).await;
    let app = serve(rpc).await;
    let response = call_from("127.0.0.1", &app.endpoint, "remote").await;
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    if cfg!(feature = "ws") {
        let late = Client::connect(app.endpoint.as_ws()).await.unwrap_err();
        assert!(format!("{late:?}").contains("503"), "{late:?}");
    }
    app.stop.send(()).unwrap();
    within(app.serving).await.unwrap().unwrap();
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_graceful_shutdown_ends_subscriptions() {
    let router = Router::new().subscription("endless", |(): (), _cx: Context| async {
        Ok(stream::iter([1]).chain(stream::pending()))
    });
    let app = serve(HttpService::new(router)).await;
    let client = Client::connect(app.endpoint.as_ws()).await.unwrap();
    let mut items = client.subscribe::<u64>("endless", ()).await.unwrap();
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 1);
    app.stop.send(()).unwrap();
    within(app.serving).await.unwrap().unwrap();
    while within(items.next()).await.is_some() {}
}

/// Without axum's `ConnectInfo`, a call has no address.
#[tokio::test]
async fn without_connect_info_there_is_no_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app: axum::Router =
        axum::Router::new().route_service("/rpc", HttpService::new(whereabouts()));
    tokio::spawn(axum::serve(listener, app).into_future());
    let endpoint = format!("http://127.0.0.1:{port}/rpc").parse().unwrap();
    let response = call_from("127.0.0.1", &endpoint, "remote").await;
    assert!(response.contains(r#""result":null"#), "{response}");
}

/// axum wraps the error of the layer in its own.
#[tokio::test]
async fn a_chunked_body_over_the_limit_of_a_layer_gets_413() {
    let app: axum::Router = axum::Router::new()
        .route_service("/rpc", HttpService::new(whereabouts()))
        .layer(RequestBodyLimitLayer::new(80));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /rpc HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{JSON}\
        transfer-encoding: chunked\r\n\r\n64\r\n{}\r\n0\r\n\r\n",
        " ".repeat(100)
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    within(stream.read_to_string(&mut response)).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
}
