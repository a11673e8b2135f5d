//! The goals for the figures, and whether they are reached.

use crate::dispatch::Cost;
use crate::results::Results;
use crate::workload::{BATCHES, SIZES};

pub(crate) struct Goal {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    /// `None` if it was not measured, or failed.
    pub(crate) measured: Option<f64>,
}

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    fn new(what: impl Into<String>, bound: Bound, measured: Option<f64>) -> Self {
        Self { what: what.into(), bound, measured }
    }

    pub(crate) fn is_reached(&self) -> Option<bool> {
        self.measured.map(|measured| match self.bound {
            Bound::AtLeast(least) => measured >= least,
            Bound::AtMost(most) => measured <= most,
        })
    }
}

pub(crate) fn all(results: &Results) -> Vec<Goal> {
    let parts = [speeds, dispatch, allocations, memory, clients, linear];
    parts.iter().flat_map(|part| part(results)).collect()
}

fn speeds(results: &Results) -> Vec<Goal> {
    let speed = |what: &str, workload: &str, to: &str, least: f64| {
        let what = format!("{what}, times {to}");
        Goal::new(what, Bound::AtLeast(least), results.ratio(workload, "antiphon", to))
    };
    vec![
        speed("HTTP, small call", "http-small", "jsonrpsee", 1.15),
        speed("HTTP, small call", "http-small", "hyper", 0.95),
        speed("HTTP, 16 pipelined", "http-pipelined", "jsonrpsee", 5.0),
        speed("HTTP, batch of 100", "http-batch", "jsonrpsee", 5.0),
        speed("HTTP, echo 64 KiB", "http-echo-64k", "jsonrpsee", 2.6),
        speed("HTTP, echo 1 MiB", "http-echo-1m", "jsonrpsee", 3.0),
        speed("WebSocket, 1 in flight", "ws-1", "jsonrpsee", 1.25),
        speed("WebSocket, 16 in flight", "ws-16", "jsonrpsee", 10.0),
        speed("WebSocket, batch of 100", "ws-batch", "jsonrpsee", 5.0),
        speed("TCP with lines, 16 in flight", "tcp-16", "plain", 0.8),
    ]
}

/// Text to text, and the HTTP services without a socket, minus the cost of the loop around them.
fn dispatch(results: &Results) -> Vec<Goal> {
    let cost = |case: &str, engine: &str, of: fn(&Cost) -> f64| {
        Some(of(results.dispatch.as_ref()?.value.get(case)?.get(engine)?))
    };
    let text = |case: &str, of: fn(&Cost) -> f64| {
        Some(cost(case, "antiphon-text", of)? / cost(case, "jsonrpsee-raw", of)?)
    };
    let net = |case: &str, engine: &str, of: fn(&Cost) -> f64| {
        let costs = results.dispatch.as_ref()?.value.get(case)?;
        Some(of(costs.get(engine)?) - of(costs.get("http")?))
    };
    let share = |case: &str, of: fn(&Cost) -> f64| {
        Some(net(case, "antiphon-http", of)? / net(case, "jsonrpsee-http", of)?)
    };
    let instructions = |cost: &Cost| cost.instructions;
    let time = |cost: &Cost| cost.nanoseconds.median;
    let goal = |title: &str, shares: [Option<f64>; 2]| {
        let least = shares.into_iter().flatten().reduce(f64::min);
        let what = format!("dispatch of {title}, instructions or time, part of jsonrpsee's");
        Goal::new(what, Bound::AtMost(1.0 / 3.0), least)
    };
    let texts = |case: &str| [text(case, instructions), text(case, time)];
    let services = |case: &str| [share(case, instructions), share(case, time)];
    vec![
        goal("say_hello, text to text", texts("hello")),
        goal("add, text to text", texts("add")),
        goal("say_hello as an HTTP service", services("hello")),
        goal("add as an HTTP service", services("add")),
        goal("a batch of 100 as an HTTP service", services("batch")),
    ]
}

fn allocations(results: &Results) -> Vec<Goal> {
    let counts = results.allocations.iter().flat_map(|counts| &counts.value);
    let counts: Vec<_> = counts.filter(|count| count.peer == "antiphon").collect();
    let most = |wires: &[&str], is_batch: bool| {
        let some = counts.iter().filter(|c| c.is_batch == is_batch && wires.contains(&&*c.wire));
        some.map(|count| count.allocations).reduce(f64::max)
    };
    vec![
        Goal::new("allocations per call, WebSocket", Bound::AtMost(6.0), most(&["ws"], false)),
        Goal::new("allocations per call, TCP", Bound::AtMost(6.0), most(&["tcp"], false)),
        Goal::new(
            "allocations per batch entry, on the wire with the most",
            Bound::AtMost(3.0),
            most(&["ws", "tcp", "http"], true),
        ),
    ]
}

fn memory(results: &Results) -> Vec<Goal> {
    let share = results.idle.as_ref().and_then(|idle| {
        let bytes = &idle.value.bytes;
        Some(bytes.get("antiphon")? / bytes.get("jsonrpsee")?)
    });
    vec![Goal::new("memory per idle WebSocket, part of jsonrpsee's", Bound::AtMost(0.5), share)]
}

fn clients(results: &Results) -> Vec<Goal> {
    let ratio = |wire: &str| {
        let clients = results.clients.as_ref()?.value.speeds.get(wire)?;
        Some(clients.get("antiphon")?.median / clients.get("jsonrpsee")?.median)
    };
    let ws = "client, 64 in flight on one WebSocket, times jsonrpsee";
    let http = "client, 64 in flight over HTTP, times jsonrpsee";
    vec![
        Goal::new(ws, Bound::AtLeast(2.5), ratio("ws")),
        Goal::new(http, Bound::AtLeast(1.2), ratio("http")),
    ]
}

/// Fixed costs dominate small messages; the cost per entry or byte must not grow.
fn linear(results: &Results) -> Vec<Goal> {
    let time = |load: &str| Some(1.0 / results.figure(load, "antiphon")?.calls_per_second);
    let [.., hundred, _, most] = BATCHES.map(|batch| time(&format!("linear-batch-{batch}")));
    let per_byte = |size: usize| Some(time(&format!("linear-echo-{size}"))? / size as f64);
    let largest = SIZES[SIZES.len() - 1];
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    vec![
        Goal::new(
            "cost per entry in a batch of 10,000, times that in one of 100",
            Bound::AtMost(1.5),
            over(most, hundred),
        ),
        Goal::new(
            "cost per byte of an echo of 16 MiB, times that of 1 MiB",
            Bound::AtMost(1.5),
            over(per_byte(largest), per_byte(1 << 20)),
        ),
    ]
}
