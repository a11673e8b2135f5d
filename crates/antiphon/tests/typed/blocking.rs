//! Methods that block, on the blocking pool.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use antiphon::layer::CatchPanic;
use antiphon::{CallError, Client, Context, ErrorObject, Handler as _, Router};
use tokio::sync::mpsc;

use crate::library::serve;

/// The calls of a test that block at the same time.
const CALLS: usize = 8;

#[antiphon::rpc]
trait Disk {
    /// Blocks until the test lets it continue.
    #[method(blocking)]
    fn read(&self, block: usize) -> Result<usize, ErrorObject>;

    #[notification(blocking)]
    fn flush(&self);

    /// Answers at once.
    fn ping(&self) -> Result<String, ErrorObject> {
        Ok("pong".to_owned())
    }
}

/// Reports each block that is being read, and waits for a signal.
struct SlowDisk {
    started: mpsc::Sender<usize>,
    go: Mutex<Receiver<()>>,
}

impl Disk for SlowDisk {
    fn read(&self, block: usize) -> Result<usize, ErrorObject> {
        self.started.blocking_send(block).map_err(|_| ErrorObject::internal_error())?;
        self.go.lock().unwrap().recv().map_err(|_| ErrorObject::internal_error())?;
        Ok(block)
    }

    fn flush(&self) {
        self.started.blocking_send(CALLS).unwrap();
    }
}

/// No time is involved: every call has started and none has ended when the ping is sent.
async fn ping_behind_blocked_calls(wire: &str) {
    let (started, mut starts) = mpsc::channel(CALLS);
    let (go, signal) = channel();
    let disk = SlowDisk { started, go: Mutex::new(signal) };
    let disk = DiskClient::new(serve(wire, disk.into_router()).await);
    let reads: Vec<_> =
        (0..CALLS).map(|block| tokio::spawn(disk.read(block).into_future())).collect();
    for _ in 0..CALLS {
        starts.recv().await.unwrap();
    }
    assert_eq!(disk.ping().await.unwrap(), "pong");
    (0..CALLS).for_each(|_| go.send(()).unwrap());
    for (block, read) in reads.into_iter().enumerate() {
        assert_eq!(read.await.unwrap().unwrap(), block);
    }
    disk.flush().await.unwrap();
    assert_eq!(starts.recv().await.unwrap(), CALLS);
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_ping_on_a_websocket_passes_blocked_calls() {
    ping_behind_blocked_calls("ws://127.0.0.1:0").await;
}

#[tokio::test]
async fn a_ping_in_memory_passes_blocked_calls() {
    ping_behind_blocked_calls("memory:typed-*").await;
}

#[tokio::test]
async fn a_panic_on_the_pool_is_an_internal_error() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let router = Router::new()
        .blocking("panic", |(): (), _cx: Context| -> Result<(), ErrorObject> {
            panic!("on purpose")
        })
        .blocking("double", |(n,): (u32,), _cx: Context| Ok(n * 2));
    let client = Client::in_process(router.clone());
    let error = client.call::<()>("panic", ()).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32603), "{error}");
    assert_eq!(client.call::<u32>("double", [21]).await.unwrap(), 42);
    let error = client.call::<u32>("double", ["x"]).await.unwrap_err();
    assert!(error.to_string().contains("-32602"), "{error}");

    let hooked = router.layer(CatchPanic::new().hook(move |method, text| {
        told.send(format!("{method}: {text}")).unwrap();
    }));
    Client::in_process(hooked).call::<()>("panic", ()).await.unwrap_err();
    assert_eq!(tell.recv().await.unwrap(), "panic: on purpose");
}

/// A function that has started runs to its end, and the call does not wait for it.
#[tokio::test]
async fn a_dropped_call_does_not_wait_for_its_function() {
    let (go, signal) = channel::<()>();
    let (started, mut starts) = mpsc::channel(1);
    let (ended, mut ends) = mpsc::channel(1);
    let signal = Arc::new(Mutex::new(signal));
    let router = Router::new().blocking("wait", move |(): (), _cx: Context| {
        started.blocking_send(()).unwrap();
        signal.lock().unwrap().recv().unwrap();
        ended.blocking_send(()).unwrap();
        Ok(())
    });
    let client = Client::in_process(router);
    let call = tokio::spawn(client.call::<()>("wait", ()).into_future());
    starts.recv().await.unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // Returns although the function still blocks.
    client.close().await;
    go.send(()).unwrap();
    ends.recv().await.unwrap();
}
