//! A handler for each connection: its own state, and the first word.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::layer::Filter;
use antiphon::transport::http::HttpService;
use antiphon::{
    CallError, Client, Connection, Context, ErrorObject, Handler, Limits, Peer, PerConnection,
    Reconnect, Router, Server,
};
use tokio::sync::mpsc;

use crate::support::{bound, client, connect, wires, within};

/// The duplex wires, with Unix sockets.
fn duplex_wires() -> Vec<&'static str> {
    let mut wires = wires();
    wires.extend(["tcp+header://127.0.0.1:0", "unix:{tmp}/*"]);
    wires
}

/// A server on a wire of `duplex_wires`.
async fn on(wire: &str) -> (Server, String) {
    let folder = std::env::temp_dir().join(format!("antiphon-per-{}-", std::process::id()));
    let wire = wire.replace("{tmp}/", folder.to_str().unwrap());
    let server = bound(&wire).await;
    let address = server.endpoint().to_string();
    (server, address)
}

/// A counter of the calls of one connection.
fn counter(_: &Connection, _: Peer) -> Router {
    let calls = AtomicU64::new(0);
    Router::new().method("count", move |(): (), _cx: Context| {
        let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(count) }
    })
}

async fn count(client: &Client) -> Result<u64, CallError> {
    within(client.call::<u64>("count", ()).into_future()).await
}

#[tokio::test]
async fn the_state_is_the_connections_own() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        tokio::spawn(server.serve_with(counter));
        let (one, two) = (connect(&address).await, connect(&address).await);
        for expected in 1..4 {
            assert_eq!(count(&one).await.unwrap(), expected, "{wire}");
        }
        assert_eq!(count(&two).await.unwrap(), 1, "{wire}");
        assert_eq!(count(&one).await.unwrap(), 4, "{wire}");
    }
}

#[tokio::test]
async fn layers_keep_the_state_of_the_connection() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let handler = PerConnection::new(counter).layer(Filter::new().deny(["no"]));
        tokio::spawn(server.serve(handler.layer(Filter::new())));
        let (one, two) = (connect(&address).await, connect(&address).await);
        assert_eq!(count(&one).await.unwrap(), 1, "{wire}");
        assert_eq!(count(&one).await.unwrap(), 2, "{wire}");
        assert_eq!(count(&two).await.unwrap(), 1, "{wire}");
    }
}

/// Tells the test each text that it is notified of, and answers `ask`.
fn listening() -> (Router, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let router = Router::new()
        .notification("said", move |(text,): (String,), _cx: Context| {
            tell.send(text).unwrap();
            async {}
        })
        .method("ask", |(): (), _cx: Context| async { Ok("answered") });
    (router, told)
}

/// The client sends nothing before it has heard something.
#[tokio::test]
async fn the_server_notifies_and_calls_first() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        tokio::spawn(server.serve_with(|connection: &Connection, peer: Peer| {
            let transport = connection.transport;
            tokio::spawn(async move {
                peer.notify("said", [transport]).await?;
                let answer = peer.call::<String>("ask", ()).await?;
                peer.notify("said", [answer]).await
            });
            Router::new()
        }));
        let (router, mut told) = listening();
        let _client = client().handler(router).connect(&address).await.unwrap();
        let scheme = address.split([':', '+']).next().unwrap();
        assert_eq!(within(told.recv()).await.unwrap(), scheme, "{wire}");
        assert_eq!(within(told.recv()).await.unwrap(), "answered", "{wire}");
    }
}

/// A request has no connection that lasts. The fast path, hyper and a batch are alike.
#[tokio::test]
async fn over_http_each_call_has_a_handler_of_its_own_and_no_way_back() {
    let made = Arc::new(AtomicUsize::new(0));
    let makes = made.clone();
    let server = bound("http://127.0.0.1:0").await;
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve_with(move |connection: &Connection, peer: Peer| {
        makes.fetch_add(1, Ordering::Relaxed);
        let calls_back = peer.clone();
        counter(connection, peer.clone())
            .method("back", move |(): (), _cx: Context| {
                let peer = calls_back.clone();
                async move {
                    let call = peer.call::<String>("ask", ()).await.unwrap_err();
                    let note = peer.notify("said", ["x"]).await.unwrap_err();
                    let topic = peer.subscribe::<u64>("ticks", ()).await.unwrap_err();
                    let mut batch = peer.batch();
                    let _ = batch.call::<u64>("ask", ());
                    let batch = batch.send().await.unwrap_err();
                    let all = [call, note, topic, batch];
                    Ok(all.iter().all(|error| matches!(error, CallError::CannotCallBack("http"))))
                }
            })
            .method("closed", move |(): (), _cx: Context| {
                let peer = peer.clone();
                async move { Ok(peer.closed().await.to_string()) }
            })
    }));
    for client in [Client::builder(), Client::builder().http2()] {
        let client = client.connect(&address).await.unwrap();
        for _ in 0..3 {
            assert_eq!(count(&client).await.unwrap(), 1);
        }
        let mut batch = client.batch();
        let slots = [(); 3].map(|()| batch.call::<u64>("count", ()));
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(slots.map(|slot| replies.take(slot).unwrap()), [1; 3]);
        assert!(within(client.call::<bool>("back", ()).into_future()).await.unwrap());
        within(client.call::<String>("closed", ()).into_future()).await.unwrap();
    }
    assert_eq!(made.load(Ordering::Relaxed), 2 * (3 + 3 + 2));
}

/// Panics for the first connection only.
fn panics_once() -> impl Fn(&Connection, Peer) -> Router + Send + Sync + 'static {
    let panicked = AtomicBool::new(false);
    move |connection, peer| {
        assert!(panicked.swap(true, Ordering::Relaxed), "on purpose");
        counter(connection, peer)
    }
}

#[tokio::test]
async fn a_closure_that_panics_ends_only_its_connection() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let server = server.limits(Limits { connections: 2, ..Limits::default() });
        tokio::spawn(server.serve_with(panics_once()));
        let first = connect(&address).await;
        assert!(count(&first).await.is_err(), "{wire}");
        within(first.peer().unwrap().closed()).await;
        let second = connect(&address).await;
        assert_eq!(count(&second).await.unwrap(), 1, "{wire}");
    }
    let server = bound("http://127.0.0.1:0").await;
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve_with(panics_once()));
    let client = connect(&address).await;
    let error = count(&client).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32603), "{error:?}");
    assert_eq!(count(&client).await.unwrap(), 1);
}

#[tokio::test]
async fn closed_is_ready_when_the_client_leaves() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let (tell, mut told) = mpsc::unbounded_channel();
        tokio::spawn(server.serve_with(move |connection: &Connection, peer: Peer| {
            let (tell, id, router) =
                (tell.clone(), connection.id(), counter(connection, peer.clone()));
            tokio::spawn(async move {
                peer.closed().await;
                assert!(peer.is_closed());
                let error = peer.notify("said", ["late"]).await.unwrap_err();
                assert!(matches!(error, CallError::Closed(_)), "{error:?}");
                tell.send(id)
            });
            router
        }));
        let (one, two) = (connect(&address).await, connect(&address).await);
        count(&one).await.unwrap();
        count(&two).await.unwrap();
        drop(one);
        let first = within(told.recv()).await.unwrap();
        assert_eq!(count(&two).await.unwrap(), 2, "{wire}");
        two.close().await;
        assert_ne!(within(told.recv()).await.unwrap(), first, "{wire}");
    }
}

/// The handler and what it has captured go with the connection.
#[tokio::test]
async fn nothing_of_a_connection_is_left() {
    struct Told(mpsc::UnboundedSender<()>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let (tell, mut told) = mpsc::unbounded_channel();
        tokio::spawn(server.serve_with(move |_: &Connection, peer: Peer| {
            // A handler that keeps its peer.
            let kept = Arc::new((Told(tell.clone()), peer));
            Router::new().method("count", move |(): (), _cx: Context| {
                let _kept = kept.clone();
                async { Ok(1) }
            })
        }));
        let client = connect(&address).await;
        assert_eq!(count(&client).await.unwrap(), 1, "{wire}");
        drop(client);
        within(told.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_can_have_a_handler_for_each_connection() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let ask = |(): (), cx: Context| async move { cx.peer()?.call::<u64>("count", ()).await };
        tokio::spawn(server.serve(Router::new().method("ask", move |params: (), cx: Context| {
            let asked = ask(params, cx);
            async move { Ok(asked.await?) }
        })));
        let handler = Arc::new(PerConnection::new(counter));
        let builder = client().handler(handler);
        let one = builder.clone().connect(&address).await.unwrap();
        let two = builder.connect(&address).await.unwrap();
        for (client, expected) in [(&one, 1), (&one, 2), (&two, 1), (&one, 3)] {
            let counted = within(client.call::<u64>("ask", ()).into_future()).await.unwrap();
            assert_eq!(counted, expected, "{wire}");
        }
    }
}

/// The client speaks first, too.
#[tokio::test]
async fn a_client_in_this_process_has_both_handlers() {
    let (router, mut told) = listening();
    let greeting = PerConnection::new(|_: &Connection, peer: Peer| {
        tokio::spawn(async move { peer.notify("said", ["hello"]).await });
        Router::new()
    });
    let client = Client::builder().handler(greeting).in_process(router);
    assert_eq!(within(told.recv()).await.unwrap(), "hello");
    assert_eq!(within(client.call::<String>("ask", ()).into_future()).await.unwrap(), "answered");
}

#[tokio::test]
async fn a_mounted_service_makes_a_handler_for_each_websocket() {
    let service = HttpService::new(PerConnection::new(counter));
    let app: axum::Router = axum::Router::new().route_service("/rpc", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    let one = Client::connect(&format!("ws://{address}/rpc")).await.unwrap();
    let two = Client::connect(&format!("ws://{address}/rpc")).await.unwrap();
    let http = Client::connect(&format!("http://{address}/rpc")).await.unwrap();
    for (client, expected) in [(&one, 1), (&one, 2), (&two, 1), (&http, 1), (&http, 1), (&one, 3)] {
        assert_eq!(count(client).await.unwrap(), expected);
    }
}

/// The handler of a connection that was lost is not used again.
#[tokio::test]
async fn a_client_that_reconnects_makes_a_handler_for_each_connection() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let router = Router::new()
            .method("ask", |(): (), cx: Context| async move {
                Ok::<_, ErrorObject>(cx.peer()?.call::<u64>("count", ()).await?)
            })
            .notification("leave", |(): (), cx: Context| async move {
                let peer = cx.peer().unwrap().clone();
                tokio::spawn(async move { peer.close().await });
            });
        tokio::spawn(server.serve(router));
        let builder = client()
            .handler(PerConnection::new(counter))
            .reconnect(Reconnect::new().pause(Duration::ZERO, Duration::ZERO));
        let client = builder.connect(&address).await.unwrap();
        for _ in 0..2 {
            for expected in [1, 2] {
                let counted = within(client.call::<u64>("ask", ()).into_future()).await;
                assert_eq!(counted.unwrap(), expected, "{wire}");
            }
            let old = client.peer().unwrap();
            within(client.notify("leave", ())).await.unwrap();
            within(old.closed()).await;
        }
    }
}

/// A shutdown ends the connections, and their handlers hear of it.
#[tokio::test]
async fn closed_is_ready_when_the_server_stops() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        let (tell, mut told) = mpsc::unbounded_channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let handler = PerConnection::new(move |connection: &Connection, peer: Peer| {
            let (tell, router) = (tell.clone(), counter(connection, peer.clone()));
            tokio::spawn(async move { tell.send(peer.closed().await) });
            router
        });
        let serving = tokio::spawn(server.serve_until(handler, async { drop(stopped.await) }));
        let client = connect(&address).await;
        count(&client).await.unwrap();
        drop(stop);
        within(told.recv()).await.unwrap();
        within(serving).await.unwrap().unwrap();
        within(client.peer().unwrap().closed()).await;
    }
}

#[tokio::test]
async fn a_clone_of_the_connection_has_its_number() {
    for wire in duplex_wires() {
        let (server, address) = on(wire).await;
        tokio::spawn(server.serve_with(|connection, _peer| {
            let kept = connection.clone();
            Router::new().method("ids", move |(): (), cx: Context| {
                let ids = (kept.id(), cx.connection().id());
                async move { Ok(ids) }
            })
        }));
        let client = connect(&address).await;
        let call = client.call::<(u64, u64)>("ids", ());
        let (kept, own) = within(call.into_future()).await.unwrap();
        assert_eq!(kept, own, "{wire}");
    }
}
