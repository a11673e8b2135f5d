//! The servers under load.

use std::collections::BTreeSet;

use super::section;
use super::table::{Table, digits, number, or_dash};
use crate::cpu::Cpu;
use crate::load::Figure;
use crate::results::Results;
use crate::server::PEERS;
use crate::workload::{self, BATCHES, SIZES, Workload};

pub(super) fn all(results: &Results) -> String {
    let parts = [throughput, streams, latency, slow, linear, apart, idle];
    parts.iter().map(|part| part(results)).collect()
}

fn throughput(results: &Results) -> String {
    let loads = workload::throughput();
    let text = format!(
        "Times jsonrpsee, whose own figure is in brackets: calls per second, where each entry of a batch \
         is a call. hyper replies with a constant and parses nothing; plain is a loop on a socket with \
         a real parse, without concurrency, limits or most of the protocol.\n\n{}{}",
        ratios(results, &loads, "jsonrpsee"),
        speeds(results, &loads) + &cpu(results, &loads)
    );
    section("Servers", &dates(results, &loads), &text)
}

fn streams(results: &Results) -> String {
    let loads = workload::streams();
    let figures = speeds(results, &loads) + &cpu(results, &loads);
    let text = format!("The server on stdio is `antiphon serve`.\n\n{figures}");
    section("Streams", &dates(results, &loads), &text)
}

fn latency(results: &Results) -> String {
    let loads = workload::latency();
    let text = "One connection, one call at a time; microseconds, p50 / p99.\n\n".to_owned()
        + &matrix(results, &loads, |figure| {
            format!("{} / {}", digits(figure.p50), digits(figure.p99))
        });
    section("Latency", &dates(results, &loads), &text)
}

fn slow(results: &Results) -> String {
    let loads = workload::slow();
    let text =
        "A handler that waits 10 ms. Calls per second, and p99 in milliseconds; no server can exceed \
         102 k per second over these WebSockets, or 51.2 k over HTTP.\n\n"
            .to_owned()
            + &matrix(results, &loads, |figure| {
                format!("{} ({} ms)", number(figure.calls_per_second), digits(figure.p99 / 1e3))
            });
    section("Slow handlers", &dates(results, &loads), &text)
}

fn linear(results: &Results) -> String {
    let loads = workload::linear();
    let cells = |load: &str, units: f64| {
        ["antiphon", "jsonrpsee"].map(|peer| {
            let figure = results.figure(load, peer);
            let cost = figure.map(|f| digits(1e9 / f.calls_per_second / units));
            let core = figure.and_then(|figure| figure.cpu.as_ref()).map(|cpu| {
                let [all, own] = [cpu.user + cpu.system, cpu.user].map(|us| us * 1e3 / units);
                format!("{} ({})", digits(all), digits(own))
            });
            [or_dash(cost), or_dash(core)]
        })
    };
    let head = |first: &str| {
        let [antiphon, jsonrpsee] = ["antiphon", "jsonrpsee"].map(str::to_owned);
        let core = "CPU (user)".to_owned();
        Table::new([first.to_owned(), antiphon, core.clone(), jsonrpsee, core])
    };
    let mut batches = head("ns per entry, by entries");
    for batch in BATCHES {
        let load = format!("linear-batch-{batch}");
        batches.row([batch.to_string()].into_iter().chain(cells(&load, 1.0).concat()));
    }
    let mut sizes = head("ns per byte, by KiB");
    for size in SIZES {
        let load = format!("linear-echo-{size}");
        sizes.row([(size >> 10).to_string()].into_iter().chain(cells(&load, size as f64).concat()));
    }
    let text = format!(
        "Over HTTP, 4 connections: cost by calls per second, and CPU time of the server's core; user \
         time in brackets.\n\n![Cost per entry and per byte](linear.svg)\n\n{}{}",
        batches.finish(),
        sizes.finish()
    );
    section("Cost as messages grow", &dates(results, &loads), &text)
}

fn idle(results: &Results) -> String {
    let Some(idle) = &results.idle else { return String::new() };
    let mut table = Table::new(["server", "KB per connection"]);
    for (peer, bytes) in &idle.value.bytes {
        table.row([peer.clone(), digits(bytes / 1e3)]);
    }
    let text = format!(
        "{} WebSocket connections that have made one call each; private memory of the process.\n\n{}",
        idle.value.connections,
        table.finish()
    );
    section("Memory of idle connections", &[&*idle.date].into(), &text)
}

fn dates<'a>(results: &'a Results, loads: &[Workload]) -> BTreeSet<&'a str> {
    loads.iter().filter_map(|load| Some(&*results.loads.get(&load.name)?.date)).collect()
}

fn ratios(results: &Results, loads: &[Workload], base: &str) -> String {
    let cell =
        |load: &Workload, figure: &Figure| match results.ratio(&load.name, &figure.peer, base) {
            Some(_) if figure.peer == base => format!("1.00 ({})", number(figure.calls_per_second)),
            Some(ratio) if figure.peer == "antiphon" => format!("**{}**", digits(ratio)),
            Some(ratio) => digits(ratio),
            None => "-".to_owned(),
        };
    matrix_of(results, loads, cell)
}

fn speeds(results: &Results, loads: &[Workload]) -> String {
    let text = "Calls per second, and the slowest and fastest round:\n\n".to_owned();
    text + &matrix(results, loads, |figure| {
        let [speed, slowest, fastest] =
            [figure.calls_per_second, figure.slowest, figure.fastest].map(number);
        format!("{speed} ({slowest} to {fastest})")
    })
}

fn cpu(results: &Results, loads: &[Workload]) -> String {
    let text = "CPU microseconds of the server per call; user time in brackets:\n\n";
    let cell = |figure: &Figure| {
        // The CPU time of a child process of the load generator is not visible.
        let cpu = figure.cpu.as_ref().filter(|cpu| cpu.user + cpu.system > 0.0);
        let cell = |cpu: &Cpu| format!("{} ({})", digits(cpu.user + cpu.system), digits(cpu.user));
        or_dash(cpu.map(cell))
    };
    text.to_owned() + &matrix(results, loads, cell)
}

/// Measurements in which the cores shared no cache.
fn apart(results: &Results) -> String {
    let having = |is: fn(&Figure) -> bool| {
        let has = move |load: &Workload| {
            let load = results.loads.get(&load.name);
            load.is_some_and(|load| load.value.iter().any(is))
        };
        workload::all().into_iter().filter(has).collect::<Vec<_>>()
    };
    let (again, as_it_was) = (having(|f| f.apart.is_some()), having(|f| f.all_count));
    let mut text = String::new();
    if !again.is_empty() {
        text += "Calls per second in measurements that were repeated, since the two cores shared no cache. \
                 No other table includes them.\n\n";
        text += &matrix(results, &again, |figure| or_dash(figure.apart.map(number)));
    }
    if !as_it_was.is_empty() {
        let names: Vec<_> = as_it_was.iter().map(|load| format!("`{}`", load.name)).collect();
        let names = names.join(", ");
        text += &format!("These workloads have no other measurement, so these count: {names}.\n\n");
    }
    let dates = &dates(results, &again) | &dates(results, &as_it_was);
    section("Cores without a shared cache", &dates, &text)
}

fn matrix(results: &Results, loads: &[Workload], cell: impl Fn(&Figure) -> String) -> String {
    matrix_of(results, loads, |_, figure| cell(figure))
}

/// One row per workload, one column per server that takes part in any of them.
fn matrix_of(
    results: &Results,
    loads: &[Workload],
    cell: impl Fn(&Workload, &Figure) -> String,
) -> String {
    let takes_part = |peer: &&str| loads.iter().any(|load| load.peers.contains(peer));
    let peers: Vec<_> = PEERS.iter().copied().filter(takes_part).collect();
    let mut table = Table::new(std::iter::once("workload").chain(peers.iter().copied()));
    for load in loads {
        let figures = results.loads.get(&load.name).map(|load| &load.value[..]).unwrap_or_default();
        let cells = peers.iter().map(|peer| {
            let figure = figures.iter().find(|figure| figure.peer == *peer);
            or_dash(figure.map(|figure| match &figure.fault {
                Some(fault) => format!("failed: {fault}"),
                None => cell(load, figure),
            }))
        });
        table.row(std::iter::once(load.title.clone()).chain(cells));
    }
    table.finish()
}
