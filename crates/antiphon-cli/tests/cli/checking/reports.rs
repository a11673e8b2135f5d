//! Reports, baselines, selections and exit codes.

use std::io::Write as _;
use std::net::TcpListener;

use super::{check, judged};
use crate::support::{Scratch, Server};

/// A case that Antiphon fails, and one that it passes.
const OWN: &str = "\
# A team's own rules.
@ section 5
== wrong-answer: subtract is addition
@ why Somebody thought so.
--> {\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[42,23],\"id\":1}
<-- {\"jsonrpc\":\"2.0\",\"result\":65,\"id\":1}
== right-answer: subtract subtracts
--> {\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[42,23],\"id\":1}
<-- {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}
";

fn own() -> (Server, Scratch, String) {
    let scratch = Scratch::new();
    let path = scratch.path("own.wire");
    std::fs::write(&path, OWN).unwrap();
    (Server::start("http://127.0.0.1:0", ""), scratch, path.display().to_string())
}

#[test]
fn a_finding_shows_its_messages_and_its_section() {
    let (server, _scratch, file) = own();
    let ended = check(&[server.endpoint("http"), &file]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in [
        "failed wrong-answer: subtract is addition",
        "--> {\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[42,23],\"id\":1}",
        "<-- HTTP 200 application/json {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}",
        "at `result`: expected 65, found 19",
        "why Somebody thought so.",
        "see MUST, section 5, Response object: https://www.jsonrpc.org/specification#response_object",
        "1 passed, 1 failed",
    ] {
        assert!(ended.stdout.contains(part), "{part} is not in\n{}", ended.stdout);
    }
    assert_eq!(ended.stderr, "");
}

#[test]
fn json_junit_and_tap_have_the_findings() {
    let (server, _scratch, file) = own();
    let endpoint = server.endpoint("http");
    let judged = judged(&[endpoint, &file]);
    assert_eq!((judged.count("passed"), judged.count("failed"), judged.code), (1, 1, Some(1)));
    let case = judged.case("wrong-answer");
    assert_eq!((&case["verdict"], &case["fault"]), (&"failed".into(), &"wrong".into()));
    assert_eq!(case["link"], "https://www.jsonrpc.org/specification#response_object");
    assert!(case["dialogue"][0]["sent"].as_str().unwrap().contains("subtract"));

    let tap = check(&[endpoint, &file, "--format", "tap"]);
    assert!(
        tap.stdout.starts_with("TAP version 14\n1..2\nnot ok 1 - own/wrong-answer: "),
        "{tap:?}"
    );
    assert!(tap.stdout.contains("\nok 2 - own/right-answer: "), "{tap:?}");

    let junit = check(&[endpoint, &file, "--format", "junit"]);
    for part in [
        "<testsuite name=\"own\" tests=\"2\" failures=\"1\" skipped=\"0\">",
        "<testcase classname=\"own\" name=\"right-answer\"/>",
        "<failure message=\"subtract is addition\">",
    ] {
        assert!(junit.stdout.contains(part), "{part} is not in\n{}", junit.stdout);
    }
}

#[test]
fn a_baseline_accepts_known_findings() {
    let (server, scratch, file) = own();
    let endpoint = server.endpoint("http");
    let baseline = scratch.path("known.txt").display().to_string();
    let with = |more: &[&str]| check(&[&[endpoint, &file, "--baseline", &baseline], more].concat());

    let missing = with(&[]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("--update-baseline writes it"), "{missing:?}");

    assert_eq!(with(&["--update-baseline"]).code, Some(0));
    let known = std::fs::read_to_string(&baseline).unwrap();
    assert!(known.ends_with("\nfailed wrong-answer\n"), "{known}");
    assert_eq!(with(&[]).code, Some(0));

    std::fs::write(&baseline, "failed right-answer\n").unwrap();
    let changed = with(&[]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.stdout.contains("wrong-answer: passed before, now failed"), "{changed:?}");
    assert!(changed.stdout.contains("right-answer: failed before, now passed"), "{changed:?}");
}

#[test]
fn ci_formats_show_known_worse_and_better_cases() {
    let (server, scratch, file) = own();
    let endpoint = server.endpoint("http");
    let baseline = scratch.path("known.txt").display().to_string();
    let with = |known: &str, format| {
        std::fs::write(&baseline, known).unwrap();
        check(&[endpoint, &file, "--baseline", &baseline, "--format", format])
    };
    // Some editors write a byte order mark. It is not part of either file.
    std::fs::write(&file, format!("\u{feff}{OWN}")).unwrap();
    for (known, format, code, parts) in [
        (
            "\u{feff}failed wrong-answer\n",
            "tap",
            0,
            ["not ok 1 - own/wrong-answer: ", " # TODO known\n"],
        ),
        (
            "failed wrong-answer\n",
            "junit",
            0,
            ["failures=\"0\" skipped=\"1\"", "<skipped message=\"known: "],
        ),
        (
            "failed right-answer\n",
            "tap",
            1,
            ["# worse than the baseline: passed before, now failed", "# better than"],
        ),
        (
            "failed right-answer\n",
            "junit",
            1,
            ["<failure message=\"worse than", "<system-out>better than"],
        ),
    ] {
        let ended = with(known, format);
        assert_eq!(ended.code, Some(code), "{known} {format}: {ended:?}");
        for part in parts {
            assert!(ended.stdout.contains(part), "{part} is not in\n{}", ended.stdout);
        }
    }
}

#[test]
fn unknown_names_leave_the_baseline() {
    let scratch = Scratch::new();
    let baseline = scratch.path("known.txt");
    std::fs::write(&baseline, "failed no-such-case\nfailed id-zero\n").unwrap();
    let server = Server::start("tcp://127.0.0.1:0", "");
    let shown = baseline.display().to_string();
    let with = |more: &[&str]| {
        let args = [server.endpoint("tcp"), "--baseline", &shown, "--update-baseline"];
        check(&[&args[..], more].concat())
    };
    let some = with(&["--only", "id-null"]);
    assert_eq!((some.code, &*some.stderr), (Some(0), ""), "{some:?}");
    let all = with(&[]);
    assert!(all.stderr.contains("contains no-such-case, but there is no such case"), "{all:?}");
    let known = std::fs::read_to_string(&baseline).unwrap();
    assert!(!known.contains("no-such-case") && !known.contains("id-zero"), "{known}");
}

#[test]
fn cases_are_chosen_and_listed() {
    let (server, _scratch, _) = own();
    let endpoint = server.endpoint("http");
    let some = judged(&[endpoint, "--only", "ids", "--skip", "id-null*"]);
    let names = some.names("passed");
    assert!(names.contains(&"id-zero") && !names.contains(&"id-null"), "{names:?}");
    assert!(names.iter().all(|name| some.case(name)["group"] == "ids"));

    let listed = check(&["--list", "--only", "id-null"]);
    assert_eq!(listed.code, Some(0));
    assert!(listed.stdout.starts_with("ids/id-null "), "{listed:?}");

    let (_server, _scratch, file) = own();
    let listed = check(&["--list", &file]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.starts_with("own/wrong-answer "), "{listed:?}");
    let alone = check(&[&file]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("put the endpoint first"), "{alone:?}");

    let wrong = check(&[endpoint, "--only", "no-such"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("no case matches `no-such`"), "{wrong:?}");
}

#[test]
fn an_invalid_transcript_is_rejected_with_its_line() {
    let scratch = Scratch::new();
    let path = scratch.path("bad.wire");
    std::fs::File::create(&path).unwrap().write_all(b"== a: b\n<-- 1\n").unwrap();
    let ended = check(&["tcp://127.0.0.1:1", &path.display().to_string()]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("bad.wire:2: a case starts with a message to send"), "{ended:?}");
}

#[test]
fn an_endpoint_without_a_listener_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ended = check(&[&format!("http://127.0.0.1:{port}")]);
    assert_eq!((ended.code, &*ended.stdout), (Some(3), ""));
    assert!(ended.stderr.contains("is the server running there?"), "{ended:?}");
}

#[test]
fn another_machine_is_not_attacked_without_a_second_flag() {
    let ended = check(&["http://192.0.2.1:80", "--hostile"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--allow-remote"), "{ended:?}");
    let ended = check(&["http://192.0.2.1:80", "--allow-remote"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--hostile"), "{ended:?}");
}
