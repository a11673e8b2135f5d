//! A client that reconnects: the server is killed and restarted during calls and subscriptions.
//!
//! This is a test binary of its own, since it measures allocated memory.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::System;
use std::future::IntoFuture;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use antiphon::{CallError, Client, Reconnect, Subscription, SubscriptionError};
use cap::Cap;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::runtime::Handle;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// The time limit of every wait. The test fails after it.
const PATIENCE: Duration = Duration::from_secs(20);
/// The memory that caches of the runtime and of threads may keep.
const SLACK: usize = 64 << 10;

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("the test hangs")
}

/// `antiphon serve`, killed when it is dropped.
struct Server {
    child: Child,
    endpoint: String,
}

impl Server {
    fn start(endpoint: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_antiphon"))
            .args(["serve", endpoint])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let endpoint = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, endpoint }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the next item, and fails on a gap.
async fn item(ticks: &mut Subscription<u64>) -> u64 {
    within(ticks.next()).await.unwrap().unwrap()
}

/// Skips items up to the gap. Those were received before the connection was lost.
async fn gap(ticks: &mut Subscription<u64>) {
    loop {
        match within(ticks.next()).await.unwrap() {
            Ok(_) => {}
            Err(SubscriptionError::Gap(_)) => return,
            Err(other) => panic!("{other}"),
        }
    }
}

/// Kills and restarts the server twice, under ten subscriptions and a hundred calls.
async fn restart_twice(endpoint: &str) {
    let mut server = Server::start(endpoint);
    let endpoint = server.endpoint.clone();
    let policy = Reconnect::new().pause(Duration::from_millis(5), Duration::from_millis(50));
    let client = Client::builder().reconnect(policy.idempotent(["subtract"]));
    let client = client.connect(&endpoint).await.unwrap();
    let mut ticks = Vec::new();
    for _ in 0..10 {
        let subscribe = client.subscribe::<u64>("ticks", (1,)).into_future();
        ticks.push(within(subscribe).await.unwrap());
    }
    for _ in 0..2 {
        for ticks in &mut ticks {
            item(ticks).await;
        }
        let slow = (0..50).map(|_| client.call::<u64>("sleep", [600_000]).into_future());
        let fast = (0..50).map(|n| client.call::<u64>("subtract", (n, 0)).into_future());
        let calls: Vec<_> = slow.chain(fast).map(tokio::spawn).collect();
        // The reply to a later call shows that all calls have been sent.
        let answered: u64 = within(client.call("subtract", (1, 0)).into_future()).await.unwrap();
        assert_eq!(answered, 1);
        drop(server);
        server = Server::start(&endpoint);
        for (at, call) in join_all(calls).await.into_iter().enumerate() {
            match call.unwrap() {
                Ok(result) => assert_eq!(result, at as u64 - 50),
                Err(CallError::Interrupted(_)) => {
                    assert!(at < 50, "call {at} is idempotent, so it is retried");
                }
                Err(other) => panic!("{at}: {other}"),
            }
        }
        for ticks in &mut ticks {
            gap(ticks).await;
            // The new server counts from 0.
            assert_eq!(item(ticks).await, 0);
        }
    }
    drop(ticks);
    within(client.close()).await;
}

/// Waits for all tasks to end, and returns their number and the allocated memory.
async fn when_idle() -> (usize, usize) {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    within(async {
        while tasks() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    (tasks(), MEMORY.allocated())
}

#[tokio::test]
async fn calls_end_subscriptions_continue_and_nothing_leaks() {
    for endpoint in ["tcp://127.0.0.1:0", "ws://127.0.0.1:0"] {
        // The first run allocates everything that is kept for the whole process.
        restart_twice(endpoint).await;
        let (_, before) = when_idle().await;
        for _ in 0..3 {
            restart_twice(endpoint).await;
        }
        let (tasks, after) = when_idle().await;
        assert_eq!(tasks, 0, "{endpoint}");
        assert!(after <= before + SLACK, "{endpoint}: {before} bytes before, {after} after");
    }
}
