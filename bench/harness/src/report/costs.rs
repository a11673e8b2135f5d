//! The sections beside the servers: clients, dispatch, allocations, parsers, builds.

use super::section;
use super::table::{Table, digits, number, or_dash};
use crate::dispatch::{CASES, Cost, ENGINES};
use crate::results::Results;

pub(super) fn all(results: &Results) -> String {
    let parts = [clients, dispatch, allocations, parsers, builds];
    parts.iter().map(|part| part(results)).collect()
}

fn clients(results: &Results) -> String {
    let Some(clients) = &results.clients else { return String::new() };
    let mut table =
        Table::new(["client", "calls per second", "slowest to fastest round", "times jsonrpsee"]);
    for (wire, of_wire) in &clients.value.speeds {
        let base = of_wire.get("jsonrpsee").map(|speed| speed.median);
        for (client, speed) in of_wire {
            table.row([
                format!("{client}, {wire}"),
                number(speed.median),
                format!("{} to {}", number(speed.min), number(speed.max)),
                or_dash(base.map(|base| digits(speed.median / base))),
            ]);
        }
    }
    let apart = match clients.value.all_count {
        true => " The two cores shared no cache all the time.",
        false => "",
    };
    let text = format!(
        "64 calls in flight, on one connection over WebSocket, against the plain loop. hyper is its \
         pooled client with messages written by hand.{apart}\n\n{}",
        table.finish()
    );
    section("Clients", &[&*clients.date].into(), &text)
}

const ENGINE_TITLES: [(&str, &str); 8] = [
    ("jsonrpsee-http", "jsonrpsee's HTTP service"),
    ("antiphon-http", "Antiphon's HTTP service"),
    ("http", "the loop around these alone"),
    ("hand", "serde_json by hand, bytes to bytes"),
    ("jsonrpsee-raw", "jsonrpsee's module, text to text"),
    ("antiphon-text", "Antiphon's responder, text to text"),
    ("jsonrpsee-call", "jsonrpsee's module, values to values"),
    ("antiphon-memory", "Antiphon's client and server in memory"),
];

fn dispatch(results: &Results) -> String {
    let Some(dispatch) = &results.dispatch else { return String::new() };
    let mut table = Table::new(["", "`say_hello`", "`add`", "batch of 100"]);
    for engine in ENGINES {
        let title = ENGINE_TITLES.iter().find(|(name, _)| *name == engine);
        let cells = CASES.map(|case| {
            or_dash(dispatch.value.get(case).and_then(|costs| costs.get(engine)).map(cost))
        });
        table.row(title.map(|(_, title)| (*title).to_owned()).into_iter().chain(cells));
    }
    let text = format!(
        "No socket: instructions / nanoseconds / allocations per call, or per whole batch. The \
         HTTP services are called as hyper calls them. The goals compare these two, minus the loop. A \
         module of jsonrpsee does not support batches. Antiphon's client and server in memory are a connection with \
         two ends, each with all its contracts.\n\n{}",
        table.finish()
    );
    section("Dispatch", &[&*dispatch.date].into(), &text)
}

fn cost(cost: &Cost) -> String {
    let figures = [cost.instructions, cost.nanoseconds.median, cost.allocations];
    figures.map(number).join(" / ")
}

fn allocations(results: &Results) -> String {
    let Some(counts) = &results.allocations else { return String::new() };
    let mut table = Table::new(["wire", "antiphon", "jsonrpsee"]);
    for (wire, is_batch) in ["ws", "tcp", "http"].into_iter().flat_map(|w| [(w, false), (w, true)])
    {
        let of = |peer: &str| {
            let count = counts.value.iter().find(|count| {
                count.peer == peer && count.wire == wire && count.is_batch == is_batch
            });
            or_dash(count.map(|count| digits(count.allocations)))
        };
        let what = if is_batch { "an entry of a batch of 100" } else { "a call" };
        table.row([format!("{wire}, {what}"), of("antiphon"), of("jsonrpsee")]);
    }
    let text = format!(
        "Allocations of the whole server, including growing buffers.\n\n{}",
        table.finish()
    );
    section("Allocations", &[&*counts.date].into(), &text)
}

fn parsers(results: &Results) -> String {
    let Some(parsers) = &results.parsers else { return String::new() };
    let names = || parsers.value.decoders.iter().map(String::as_str);
    let mut times = Table::new(std::iter::once("message").chain(names()));
    for row in &parsers.value.times {
        let title = format!("{}, {} B", row.message, row.bytes);
        let cells = row.nanoseconds.iter().map(|nanoseconds| number(*nanoseconds));
        times.row(std::iter::once(title).chain(cells));
    }
    let mut verdicts = Table::new(["message", "right"].into_iter().chain(names()));
    for row in &parsers.value.verdicts {
        let cells = row.verdicts.iter().zip(&row.right);
        let cells = cells.map(|(verdict, right)| match right {
            true => "right".to_owned(),
            false => format!("**{verdict}**"),
        });
        let title = [row.case.clone(), row.expected.clone()];
        verdicts.row(title.into_iter().chain(cells));
    }
    let text = format!(
        "Decoding of an envelope, nanoseconds, medians of interleaved rounds.\n\n{}What each makes \
         of messages that are easy to get wrong, where derived code does what its author did not \
         say:\n\n{}",
        times.finish(),
        verdicts.finish()
    );
    section("Parser", &[&*parsers.date].into(), &text)
}

fn builds(results: &Results) -> String {
    let Some(builds) = &results.builds else { return String::new() };
    let mut table = Table::new(["server", "seconds", "crates"]);
    for (peer, build) in &builds.value {
        table.row([peer.clone(), digits(build.seconds), build.dependencies.to_string()]);
    }
    let text = format!("A clean release build on all cores.\n\n{}", table.finish());
    section("Builds", &[&*builds.date].into(), &text)
}
