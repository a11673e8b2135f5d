//! The output: a table, or one JSON document.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::mpsc::channel;

use rustix::process::Signal;
use serde_json::Value;

use super::bench;
use super::servers::{hello_line, line_id, server};
use crate::support::{PATIENCE, Process, Server, antiphon};

#[test]
fn the_json_document_has_fixed_members() {
    let server = Server::start("tcp://127.0.0.1:0 http://127.0.0.1:0", "");
    let other = format!("b={}", server.endpoint("http"));
    let words = ["--name", "a", server.endpoint("tcp"), "echo", "1", "--vs", &other, "-n", "40"];
    let more = ["-c", "2", "-f", "3", "-b", "4", "--rounds", "2", "--format", "json"];
    let ended = bench(&[&words[..], &more].concat());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        keys(&report),
        ["batch", "connections", "in_flight", "method", "rate", "rounds", "targets"]
    );
    let head = ["method", "connections", "in_flight", "batch", "rate", "rounds"];
    let head: Vec<_> = head.iter().map(|name| report[name].to_string()).collect();
    assert_eq!(head, ["\"echo\"", "2", "3", "4", "null", "2"]);
    let targets = report["targets"].as_array().unwrap();
    let names: Vec<_> = targets.iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(targets[1]["endpoint"], server.endpoint("http"));
    assert_eq!(targets[0]["ratio"], 1.0);
    for target in targets {
        let of_target = ["calls_per_second", "endpoint", "errors", "latency_us", "name", "ratio"];
        assert_eq!(keys(target), [&of_target[..], &["rounds", "spread"]].concat());
        assert_eq!(keys(&target["spread"]), ["max", "min"]);
        assert_eq!(keys(&target["errors"]), [""; 0]);
        let rounds = target["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            let of_round = ["calls", "calls_per_second", "errors", "latency_us", "seconds"];
            assert_eq!(keys(round), of_round);
            assert_eq!(round["calls"], 40);
        }
        for latency in [&target["latency_us"], &rounds[0]["latency_us"]] {
            assert_eq!(keys(latency), ["max", "mean", "p50", "p90", "p99", "p99.9"]);
            let figure = |name: &str| latency[name].as_f64().unwrap();
            assert!(0.0 < figure("p50") && figure("p50") <= figure("max"), "{latency}");
        }
    }
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn endpoints_take_turns_and_each_round_starts_with_another() {
    let (heard, hears) = channel();
    let endpoints = ["a", "b", "c"].map(|name| {
        let heard = heard.clone();
        let endpoint = server("tcp", move |mut socket| {
            let id = line_id(&mut socket)?;
            heard.send(name).unwrap();
            socket.get_mut().write_all(hello_line(id).as_bytes()).ok()
        });
        format!("{name}={endpoint}")
    });
    let first = endpoints[0].strip_prefix("a=").unwrap();
    let words = [first, "m", "--vs", &endpoints[1], "--vs", &endpoints[2], "-c", "1", "-n", "1"];
    let ended = bench(&[&words[..], &["--rounds", "3"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let order: String = hears.try_iter().collect();
    assert_eq!(order, "abcbcacab");
    for part in ["3 rounds of 1 call", "calls/s", "min..max", "ratio", "p50", "p99", "errors"] {
        assert!(ended.stdout.contains(part), "{part} is missing: {}", ended.stdout);
    }
}

#[test]
fn the_table_shows_results_and_errors() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let ended = bench(&[server.endpoint("tcp"), "echo", "-n", "100"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let rows: Vec<Vec<&str>> =
        ended.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let load = format!("echo at {}: 16 connections, 100 calls", server.endpoint("tcp"));
    assert_eq!(rows[0].join(" "), load);
    assert_eq!(rows[2], ["calls/s", "p50", "p90", "p99", "p99.9", "max", "errors"]);
    assert_eq!((rows.len(), rows[3].last()), (4, Some(&"none")));

    let ended = bench(&[server.endpoint("tcp"), "fail", "7", "out\u{1b} of tea", "-n", "100"]);
    assert_eq!(ended.code, Some(1));
    let errors = "100 x error 7, for example: out\\u{1b} of tea";
    assert!(ended.stdout.contains(errors), "{}", ended.stdout);
}

#[test]
fn ctrl_c_prints_the_results_so_far() {
    let (called, is_called) = channel();
    let endpoint = server("tcp", move |mut socket| {
        loop {
            let id = line_id(&mut socket)?;
            socket.get_mut().write_all(hello_line(id).as_bytes()).ok()?;
            if id == 100 {
                called.send(()).ok()?;
            }
        }
    });
    let words = ["bench", &endpoint, "m", "-c", "1", "-t", "10m", "--warm-up", "0"];
    let bench = antiphon().args(words).stdout(Stdio::piped()).spawn().unwrap();
    is_called.recv_timeout(PATIENCE).unwrap();
    Process::of(&bench).signal(Signal::INT);
    let output = bench.wait_with_output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}");
    assert!(table.contains("calls/s") && table.contains("none"), "{table}");
}
