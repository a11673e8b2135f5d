//! A server on several threads, each with a runtime and an acceptor of its own.
//!
//! A connection stays on the thread that has accepted it: nothing is handed from core to core, which
//! costs more than a small call. Rejected: `SO_REUSEPORT`, where the kernel deals connections out by
//! their addresses, and an idle thread cannot help a busy one. Here all accept from one queue.

use std::io;
use std::thread;

use tokio::runtime;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Endpoint;
use super::listener::{Listener, SharedListener};
use super::service::Service;

/// The threads beside the one that serves anyway; they end when it is dropped.
pub(super) struct Threads {
    _end: DropGuard,
}

/// Starts this many more threads on the listeners that can be shared.
pub(super) fn start(
    threads: usize,
    listeners: &[(Option<Endpoint>, Listener)],
    service: &Service,
) -> io::Result<Threads> {
    let end = CancellationToken::new();
    for number in 0..threads {
        let shared: io::Result<Vec<_>> = listeners
            .iter()
            .filter_map(|(endpoint, listener)| Some((endpoint.clone(), listener.share()?)))
            .map(|(endpoint, listener)| listener.map(|listener| (endpoint, listener)))
            .collect();
        let (shared, service, end) = (shared?, service.clone(), end.clone());
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new()
            .name(format!("antiphon-{}", number + 1))
            .spawn(move || runtime.block_on(accept(shared, service, end)))?;
    }
    Ok(Threads { _end: end.drop_guard() })
}

async fn accept(
    shared: Vec<(Option<Endpoint>, SharedListener)>,
    service: Service,
    end: CancellationToken,
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
    // What was accepted here is finished here.
    end.cancelled().await;
}
