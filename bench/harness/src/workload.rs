//! The workloads.

use crate::server::PEERS;

/// One workload, for every server that supports it.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) wire: &'static str,
    pub(crate) peers: Vec<&'static str>,
    pub(crate) call: Call,
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    pub(crate) batch: Option<usize>,
    /// The length of one round.
    pub(crate) seconds: f64,
}

pub(crate) enum Call {
    /// No params, a short result.
    Hello,
    /// Echoes an Array with a String of this many bytes.
    Echo(usize),
    /// Milliseconds.
    Sleep(u32),
}

impl Workload {
    fn new(
        name: &str,
        title: &str,
        wire: &'static str,
        connections: usize,
        in_flight: usize,
    ) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            wire,
            peers: peers(wire),
            call: Call::Hello,
            connections,
            in_flight,
            batch: None,
            seconds: 1.0,
        }
    }

    fn call(self, call: Call) -> Self {
        Self { call, ..self }
    }

    fn batch(self, batch: usize) -> Self {
        Self { batch: Some(batch), ..self }
    }

    fn seconds(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }

    fn among(self, peers: &[&'static str]) -> Self {
        Self { peers: peers.to_vec(), ..self }
    }
}

/// The servers of a wire; the first is the baseline.
fn peers(wire: &str) -> Vec<&'static str> {
    match wire {
        "http" => PEERS.to_vec(),
        "ws" => vec!["jsonrpsee", "antiphon", "ajj", "axum", "plain"],
        "tcp" => vec!["plain", "antiphon", "jayson"],
        _ => vec!["antiphon"],
    }
}

/// The throughput workloads, in the order of RESULTS.md.
pub(crate) fn throughput() -> Vec<Workload> {
    use Call::Echo;
    let new = Workload::new;
    vec![
        new("http-small", "HTTP, small call, 64 connections", "http", 64, 1),
        new("http-batch", "HTTP, batch of 100", "http", 16, 1).batch(100),
        new("http-echo-64k", "HTTP, echo 64 KiB", "http", 16, 1).call(Echo(64 << 10)),
        new("http-echo-1m", "HTTP, echo 1 MiB", "http", 8, 1).call(Echo(1 << 20)),
        new("http-pipelined", "HTTP, 16 pipelined, 64 connections", "http", 64, 16),
        new("ws-1", "WebSocket, 64 connections, 1 in flight", "ws", 64, 1),
        new("ws-16", "WebSocket, 64 connections, 16 in flight", "ws", 64, 16),
        new("ws-batch", "WebSocket, batch of 100", "ws", 16, 1).batch(100),
    ]
}

pub(crate) fn streams() -> Vec<Workload> {
    let new = Workload::new;
    vec![
        new("tcp-16", "TCP with lines, 64 connections, 16 in flight", "tcp", 64, 16),
        new("unix-16", "Unix socket with lines, 64 connections, 16 in flight", "unix", 64, 16),
        new("stdio-16", "stdio of a child process, 16 in flight", "stdio", 1, 16),
    ]
}

pub(crate) fn latency() -> Vec<Workload> {
    [
        ("latency-http", "HTTP", "http"),
        ("latency-ws", "WebSocket", "ws"),
        ("latency-tcp", "TCP", "tcp"),
    ]
    .map(|(name, title, wire)| Workload::new(name, title, wire, 1, 1).seconds(0.5))
    .into()
}

/// A handler that waits 10 ms; servers that always respond at once cannot take part.
pub(crate) fn slow() -> Vec<Workload> {
    let new = Workload::new;
    let ws = new("slow-ws", "WebSocket, 64 connections, 16 in flight", "ws", 64, 16);
    let http = new("slow-http", "HTTP, 512 connections", "http", 512, 1);
    vec![
        ws.call(Call::Sleep(10)).among(&["jsonrpsee", "antiphon", "ajj", "axum"]),
        http.call(Call::Sleep(10)).among(&["jsonrpsee", "antiphon", "ajj", "axum", "jayson"]),
    ]
}

pub(crate) const BATCHES: [usize; 4] = [10, 100, 1_000, 10_000];
pub(crate) const SIZES: [usize; 8] =
    [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// Batches and messages of growing size.
pub(crate) fn linear() -> Vec<Workload> {
    let new = |name: String, title: String| {
        Workload::new(&name, &title, "http", 4, 1).among(&["jsonrpsee", "antiphon"])
    };
    let batches =
        BATCHES.map(|n| new(format!("linear-batch-{n}"), format!("batch of {n}")).batch(n));
    let sizes = SIZES.map(|size| {
        new(format!("linear-echo-{size}"), format!("echo of {} KiB", size >> 10))
            .call(Call::Echo(size))
    });
    batches.into_iter().chain(sizes).collect()
}

pub(crate) fn all() -> Vec<Workload> {
    [throughput(), streams(), latency(), slow(), linear()].into_iter().flatten().collect()
}
