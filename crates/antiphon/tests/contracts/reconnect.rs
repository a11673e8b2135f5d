//! Clients that reconnect: their pending calls, their subscriptions, and when they give up.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::{
    CallError, CancellationToken, Client, ClientBuilder, ConnectionState, Context, Dialect,
    ErrorChain, ErrorObject, Limits, Reconnect, Router, Server, SubscriptionError,
};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::{Holding, answer, holding, line, notification, serve, within};

/// A proxy between a client and a server whose connections can be cut.
struct Cable {
    address: String,
    cut: mpsc::Sender<()>,
    _task: JoinHandle<()>,
}

impl Cable {
    async fn to(server: &str) -> Self {
        let server = server.trim_start_matches("tcp://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let (cut, mut cuts) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = TcpStream::connect(&server).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = cuts.recv() => {}
                }
            }
        });
        Self { address, cut, _task: task }
    }

    async fn cut(&self) {
        self.cut.send(()).await.unwrap();
    }
}

/// Reconnects without a pause.
fn quickly() -> Reconnect {
    Reconnect::new().pause(Duration::ZERO, Duration::from_millis(1))
}

fn reconnecting(policy: Reconnect) -> ClientBuilder {
    Client::builder().reconnect(policy)
}

/// Counts its calls.
fn counted(router: Router) -> (Router, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = count.clone();
    let router = router.method("count", move |(): (), _cx: Context| {
        let count = calls.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(count) }
    });
    (router, count)
}

#[tokio::test]
async fn a_pending_call_is_interrupted_and_the_next_one_is_not() {
    let Holding { router, mut entered, .. } = holding();
    let (router, _) = counted(router);
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let client = reconnecting(quickly()).connect(&cable.address).await.unwrap();
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    cable.cut().await;
    let lost = within(call).await.unwrap();
    assert!(matches!(lost, Err(CallError::Interrupted(_))), "{lost:?}");
    let count: usize = within(client.call("count", ()).into_future()).await.unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn only_idempotent_calls_are_repeated() {
    let Holding { router, mut entered, release, .. } = holding();
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let policy = quickly().idempotent(["ho*"]).retries(2);
    let client = reconnecting(policy).connect(&cable.address).await.unwrap();
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    for _ in 0..2 {
        within(entered.recv()).await.unwrap();
        cable.cut().await;
    }
    within(entered.recv()).await.unwrap();
    release.notify_waiters();
    assert_eq!(within(call).await.unwrap().unwrap(), "held");
    // A batch is repeated if all of its calls are idempotent.
    let mut batch = client.batch();
    let slots = [batch.call::<String>("hold", ()), batch.call("hold", ())];
    let batch = tokio::spawn(batch.send());
    within(entered.recv()).await.unwrap();
    within(entered.recv()).await.unwrap();
    cable.cut().await;
    within(entered.recv()).await.unwrap();
    within(entered.recv()).await.unwrap();
    release.notify_waiters();
    let mut replies = within(batch).await.unwrap().unwrap();
    for slot in slots {
        assert_eq!(replies.take(slot).unwrap(), "held");
    }
    // A call is repeated at most twice.
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    for _ in 0..3 {
        within(entered.recv()).await.unwrap();
        cable.cut().await;
    }
    assert!(matches!(within(call).await.unwrap(), Err(CallError::Interrupted(_))));
}

#[tokio::test]
async fn each_call_of_a_lost_batch_is_interrupted() {
    let Holding { router, mut entered, .. } = holding();
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let client = reconnecting(quickly()).connect(&cable.address).await.unwrap();
    let mut batch = client.batch();
    let slots = [batch.call::<String>("hold", ()), batch.call("hold", ())];
    let batch = tokio::spawn(batch.send());
    within(entered.recv()).await.unwrap();
    cable.cut().await;
    let mut replies = within(batch).await.unwrap().unwrap();
    for slot in slots {
        assert!(matches!(replies.take(slot), Err(CallError::Interrupted(_))));
    }
}

#[tokio::test]
async fn subscriptions_are_renewed_after_a_graceful_stop_of_the_server() {
    const ADDRESS: &str = "memory:restarted";
    let router = || {
        Router::new().subscription("tick", |(): (), _cx: Context| async {
            Ok(stream::iter([1_u64]).chain(stream::pending()))
        })
    };
    let serve = |server: Server| {
        let stop = CancellationToken::new();
        (tokio::spawn(server.serve_until(router(), stop.clone().cancelled_owned())), stop)
    };
    let (mut running, mut stop) = serve(Server::bind(ADDRESS).await.unwrap());
    let client = reconnecting(quickly()).connect(ADDRESS).await.unwrap();
    let mut ticks = within(client.subscribe::<u64>("tick", ()).into_future()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(within(ticks.next()).await.unwrap().unwrap(), 1);
        stop.cancel();
        within(running).await.unwrap().unwrap();
        (running, stop) = serve(Server::bind(ADDRESS).await.unwrap());
        let gap = within(ticks.next()).await;
        assert!(matches!(gap, Some(Err(SubscriptionError::Gap(_)))), "{gap:?}");
    }
    drop((running, stop));
}

#[tokio::test]
async fn subscriptions_are_renewed_with_a_gap() {
    let router = Router::new().subscription("tick", |(from,): (u64,), _cx: Context| async move {
        Ok(stream::iter(from..from + 2).chain(stream::pending()))
    });
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let client = reconnecting(quickly()).connect(&cable.address).await.unwrap();
    let mut ticks = Vec::new();
    for from in 0..10 {
        let tick = client.subscribe::<u64>("tick", (from * 10,)).into_future();
        ticks.push(within(tick).await.unwrap());
    }
    for round in 0..5 {
        for (from, tick) in (0..).step_by(10).zip(&mut ticks) {
            if round > 0 {
                let gap = within(tick.next()).await.unwrap();
                assert!(matches!(gap, Err(SubscriptionError::Gap(_))), "{gap:?}");
            }
            assert_eq!(within(tick.next()).await.unwrap().unwrap(), from);
            assert_eq!(within(tick.next()).await.unwrap().unwrap(), from + 1);
        }
        // A dropped subscription is not renewed.
        drop(ticks.pop());
        cable.cut().await;
    }
}

/// Accepts the next connection of a scripted server.
async fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    BufReader::new(within(listener.accept()).await.unwrap().0)
}

async fn write(stream: &mut BufReader<TcpStream>, lines: &[String]) {
    stream.write_all((lines.join("\n") + "\n").as_bytes()).await.unwrap();
}

/// The server ends the subscription in the same write as the reply. A handler still runs, so its connection
/// stays open and refuses requests.
#[tokio::test]
async fn a_subscription_is_not_renewed_on_a_connection_that_shuts_down() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut first = accept(&listener).await;
        let subscribe = line(&mut first).await;
        let closed = r#"{"subscription":"one","closed":"shutting down"}"#;
        let replies = [answer(&subscribe["id"], r#""one""#), notification("tick", closed)];
        write(&mut first, &replies).await;
        let mut requests = Vec::new();
        while requests.iter().filter(|method| *method == "ping").count() < 2 {
            let request = line(&mut first).await;
            let busy = ErrorObject::server_busy("shutting down");
            let busy = serde_json::json!({"jsonrpc": "2.0", "error": busy, "id": request["id"]});
            write(&mut first, &[busy.to_string()]).await;
            requests.push(request["method"].clone());
        }
        drop(first);
        let mut second = accept(&listener).await;
        let subscribe = line(&mut second).await;
        let item = r#"{"subscription":"two","result":7}"#;
        let replies = [answer(&subscribe["id"], r#""two""#), notification("tick", item)];
        write(&mut second, &replies).await;
        (requests, second)
    });
    let client = reconnecting(quickly()).connect(&address).await.unwrap();
    let mut ticks = within(client.subscribe::<u64>("tick", ()).into_future()).await.unwrap();
    for _ in 0..2 {
        let refused = within(client.call::<Value>("ping", ()).into_future()).await;
        assert!(matches!(refused, Err(CallError::Rpc(_))), "{refused:?}");
    }
    let gap = within(ticks.next()).await;
    assert!(matches!(gap, Some(Err(SubscriptionError::Gap(_)))), "{gap:?}");
    assert_eq!(within(ticks.next()).await.unwrap().unwrap(), 7);
    let (requests, _second) = within(server).await.unwrap();
    assert_eq!(requests, ["ping", "ping"]);
}

/// The clock advances when every task waits, so the pauses can be measured.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_renewed_when_the_server_is_no_longer_busy() {
    let tries = Arc::new(AtomicUsize::new(0));
    let tried = tries.clone();
    let router = Router::new().subscription("tick", move |(): (), _cx: Context| {
        let attempt = tried.fetch_add(1, Ordering::SeqCst);
        async move {
            if (1..4).contains(&attempt) {
                return Err(ErrorObject::server_busy("too many calls wait"));
            }
            Ok(stream::iter([attempt]).chain(stream::pending()))
        }
    });
    let address = serve("memory:*", Limits::default(), router).await;
    let policy = Reconnect::new().pause(Duration::from_millis(100), Duration::from_secs(30));
    let client = reconnecting(policy).connect(&address).await.unwrap();
    let mut ticks = within(client.subscribe::<usize>("tick", ()).into_future()).await.unwrap();
    assert_eq!(within(ticks.next()).await.unwrap().unwrap(), 0);
    let start = tokio::time::Instant::now();
    within(client.peer().unwrap().close()).await;
    let gap = within(ticks.next()).await;
    assert!(matches!(gap, Some(Err(SubscriptionError::Gap(_)))), "{gap:?}");
    assert_eq!(within(ticks.next()).await.unwrap().unwrap(), 4);
    // One pause before the connection, and one after each refusal. At most half of a pause is random.
    let least = Duration::from_millis((100 + 100 + 200 + 400) / 2);
    assert!(start.elapsed() >= least, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_subscription_that_cannot_be_renewed_ends_with_the_error() {
    let allowed = Arc::new(AtomicUsize::new(1));
    let router = Router::new().subscription("once", move |(): (), _cx: Context| {
        let left = allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        async move {
            left.map_err(|_| antiphon::ErrorObject::new(9, "not again"))?;
            Ok(stream::iter([1]).chain(stream::pending()))
        }
    });
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let client = reconnecting(quickly()).connect(&cable.address).await.unwrap();
    let mut once = within(client.subscribe::<u64>("once", ()).into_future()).await.unwrap();
    assert_eq!(within(once.next()).await.unwrap().unwrap(), 1);
    cable.cut().await;
    let last = within(once.next()).await.unwrap();
    assert!(matches!(last, Err(SubscriptionError::Failed(error)) if error.code.0 == 9));
    assert!(within(once.next()).await.is_none());
}

#[tokio::test]
async fn states_are_reported_and_a_closed_client_stays_closed() {
    let Holding { router, .. } = holding();
    let address = serve("memory:*", Limits::default(), router).await;
    let policy = quickly().attempts(3);
    let client = reconnecting(policy).connect(&address).await.unwrap();
    let mut states = client.states().unwrap();
    let connected = within(states.wait_for(|state| *state == ConnectionState::Connected)).await;
    drop(connected.unwrap());
    client.peer().unwrap().close().await;
    let call = client.call::<String>("anything", ()).into_future();
    // The server still runs, so the client reconnects.
    assert!(matches!(within(call).await, Err(CallError::Rpc(_))));
    let closed = client.clone();
    within(closed.close()).await;
    let state = client.states().unwrap().borrow().clone();
    assert!(matches!(state, ConnectionState::Closed { .. }), "{state:?}");
    let refused = within(client.call::<String>("anything", ()).into_future()).await;
    assert!(matches!(refused, Err(CallError::Closed(_))), "{refused:?}");
}

#[tokio::test]
async fn after_the_last_attempt_all_waiting_calls_fail() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let client = reconnecting(quickly().attempts(3)).connect(&address).await.unwrap();
    let accepted = within(listener.accept()).await.unwrap();
    drop(listener);
    let call = tokio::spawn(client.call::<String>("one", ()).into_future());
    drop(accepted);
    let lost = within(call).await.unwrap().unwrap_err();
    assert!(matches!(lost, CallError::Closed(_) | CallError::Interrupted(_)), "{lost}");
    let refused = within(client.call::<String>("two", ()).into_future()).await.unwrap_err();
    assert!(ErrorChain(&refused).to_string().contains("gave up after 3 attempts"), "{refused}");
}

#[tokio::test]
async fn a_client_may_wait_for_a_server_that_starts_later() {
    let probe = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", probe.local_addr().unwrap());
    drop(probe);
    assert!(reconnecting(quickly()).connect(&address).await.is_err());
    let client = within(reconnecting(quickly().wait_for_server()).connect(&address)).await.unwrap();
    let call = tokio::spawn(client.call::<usize>("count", ()).into_future());
    let server = antiphon::Server::bind(&address).await.unwrap();
    let (router, _) = counted(Router::new());
    tokio::spawn(server.serve(router));
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_dropped_client_leaves_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let Holding { router, .. } = holding();
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    // The server, its accept loop, and the proxy.
    let before = 3;
    for connected in [true, false] {
        let client = reconnecting(Reconnect::new()).connect(&cable.address).await.unwrap();
        // The proxy carries this connection by now.
        let answered = within(client.call::<()>("nothing", ()).into_future()).await;
        assert!(matches!(answered, Err(CallError::Rpc(_))), "{answered:?}");
        if !connected {
            cable.cut().await;
            let mut states = client.states().unwrap();
            let lost = |state: &ConnectionState| *state != ConnectionState::Connected;
            drop(within(states.wait_for(lost)).await.unwrap());
        }
        drop(client);
        within(async {
            while tasks() > before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Each connection of a client has the handler and the dialect of the client.
#[tokio::test]
async fn a_new_connection_has_the_settings_of_the_first() {
    let theirs = Router::new().method("ask", |(): (), cx: Context| async move {
        Ok(cx.peer()?.call::<String>("name", ()).await?)
    });
    let ours = Router::new().method("name", |(): (), _cx: Context| async { Ok("ada") });
    let cable = Cable::to(&serve("tcp://127.0.0.1:0", Limits::default(), theirs).await).await;
    let client = reconnecting(quickly()).dialect(Dialect::lsp()).handler(ours);
    let client = client.connect(&cable.address).await.unwrap();
    for _ in 0..3 {
        let name = loop {
            // The cut may be detected before or after the call is sent.
            match within(client.call::<String>("ask", ()).into_future()).await {
                Err(CallError::Interrupted(_)) => {}
                other => break other.unwrap(),
            }
        };
        assert_eq!(name, "ada");
        cable.cut().await;
    }
}

#[tokio::test]
async fn a_call_that_was_sent_once_and_finds_no_further_connection_may_have_run() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let policy = quickly().attempts(2).idempotent(["m", "note"]);
    let client = reconnecting(policy).connect(&address).await.unwrap();
    let mut batch = client.batch();
    let entry = batch.call::<u64>("m", ());
    let batch = tokio::spawn(async move { batch.send().await.and_then(|mut all| all.take(entry)) });
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    let (mut stream, _) = within(listener.accept()).await.unwrap();
    let mut read = Vec::new();
    while read.iter().filter(|byte| **byte == b'\n').count() < 2 {
        within(stream.read_buf(&mut read)).await.unwrap();
    }
    drop((stream, listener));
    for call in [call, batch] {
        let error = within(call).await.unwrap().unwrap_err();
        assert!(!error.was_not_sent() && error.may_have_run(), "{error:?}");
    }
    // This one finds the client closed.
    let error = within(client.call::<u64>("m", ()).into_future()).await.unwrap_err();
    assert!(error.was_not_sent(), "{error:?}");
}
