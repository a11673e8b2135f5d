//! A server on several threads, each with its own runtime and accept loop.
//!
//! A connection stays on the thread that has accepted it, because moving work between cores costs more
//! than a small call. All threads accept from one queue. `SO_REUSEPORT` was rejected: with it, the kernel
//! assigns connections by their addresses, and an idle thread cannot take those of a busy one.

use std::io;
use std::thread;

use tokio::runtime;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Endpoint;
use super::listener::{Listener, SharedListener};
use super::wire_service::WireService;

/// The additional threads of a server. They end when it is dropped.
pub(super) struct Threads {
    _end: DropGuard,
}

/// Starts this many additional threads, which accept from the listeners that can be shared.
pub(super) fn start(
    threads: usize,
    listeners: &[(Option<Endpoint>, Listener)],
    service: &WireService,
) -> io::Result<Threads> {
    let end = CancellationToken::new();
    // Before the loop: if a later thread cannot start, those that run must end.
    let guard = end.clone().drop_guard();
    for number in 0..threads {
        let shared: io::Result<Vec<_>> = listeners
            .iter()
            .filter_map(|(endpoint, listener)| Some((endpoint.clone(), listener.share()?)))
            .map(|(endpoint, listener)| listener.map(|listener| (endpoint, listener)))
            .collect();
        let (shared, service, end) = (shared?, service.clone(), end.clone());
        // A shutdown is complete when no thread listens any more: the address can be bound again then.
        let listening = service.registry.hold();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new()
            .name(format!("antiphon-{}", number + 1))
            .spawn(move || runtime.block_on(accept(shared, service, end, listening)))?;
    }
    Ok(Threads { _end: guard })
}

async fn accept(
    shared: Vec<(Option<Endpoint>, SharedListener)>,
    service: WireService,
    end: CancellationToken,
    listening: TaskTrackerToken,
) {
    let stopping = service.registry.stopping();
    let mut acceptors = JoinSet::new();
    for (endpoint, listener) in shared {
        match listener.open() {
            Ok(listener) => drop(acceptors.spawn(service.clone().accept(endpoint, listener))),
            Err(error) => tracing::error!(%error, ?endpoint, "a thread cannot accept connections"),
        }
    }
    tokio::select! {
        () = stopping.cancelled() => {}
        () = end.cancelled() => {}
    }
    acceptors.shutdown().await;
    drop(listening);
    // The connections of this thread finish here, so its runtime must run until the server has ended.
    end.cancelled().await;
}
