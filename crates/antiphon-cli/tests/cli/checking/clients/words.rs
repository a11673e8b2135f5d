//! Messages and exit codes of `antiphon check-client`.

use super::{antiphon_call, check_client, client, judged};

fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_command_must_say_where_the_server_is() {
    let ended = check_client(&[], &words(&["true"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("{endpoint}"), "{ended:?}");
}

#[test]
fn a_framing_is_for_raw_streams() {
    let call = antiphon_call(&["call", "{endpoint}", "a"]);
    let ended = check_client(&["--framing", "header"], &call);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--over tcp, unix and stdio"), "{ended:?}");
    for over in ["tcp", "unix"] {
        let only = ["--over", over, "--framing", "header", "--only", "header-*"];
        let judged = judged(&only, &call);
        assert!(judged.count("passed") > 3, "{}", judged.report);
    }
}

#[test]
fn a_command_that_does_not_start_is_an_error() {
    let ended = check_client(&[], &words(&["no-such-client", "{endpoint}"]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("`no-such-client` does not start"), "{ended:?}");
}

#[test]
fn a_client_without_a_call_is_an_error() {
    if !crate::interop::runs("curl") {
        return crate::support::missing("curl", "install curl");
    }
    for (command, reason) in [
        (&["true", "{endpoint}"][..], "the client made no call"),
        (&["sh", "-c", "echo oops >&2; exit 3", "{port}"], "oops"),
        (&["sh", "-c", "kill -9 $$", "{address}"], "signal 9"),
        (&["curl", "-sd", "{jsonrpc}", "{endpoint}"], "not JSON"),
    ] {
        let ended = check_client(&[], &words(command));
        assert_eq!((ended.code, &*ended.stdout), (Some(5), ""), "{ended:?}");
        assert!(ended.stderr.contains(reason), "{reason}: {ended:?}");
    }
}

/// A hanging client is killed with all its children.
#[test]
fn a_client_that_never_ends_is_ended() {
    let command = words(&["sh", "-c", "sleep 1000 & sleep 1000", "{endpoint}"]);
    let ended = check_client(&["--timeout", "300ms"], &command);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("still running after 300ms"), "{ended:?}");
}

#[test]
fn only_and_skip_choose_scenarios() {
    let call = antiphon_call(&["call", "{endpoint}", "a"]);
    let judged = judged(&["--only", "error-*", "--skip", "error-data*", "--skip", "choice"], &call);
    let cases = judged.report["cases"].as_array().unwrap();
    assert!(cases.iter().all(|case| case["group"] == "errors"), "{cases:?}");
    assert!(judged.names("passed").contains(&"error-plain"));
    assert!(!judged.names("passed").contains(&"error-data"));
    assert_eq!(judged.report["over"], "http");
}

#[test]
fn a_budget_ends_the_run() {
    let call = antiphon_call(&["call", "{endpoint}", "a"]);
    let ended = check_client(&["--budget", "1ms"], &call);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("the time limit was reached"), "{ended:?}");
}

#[test]
fn they_can_be_listed() {
    let ended = check_client(&["--list", "--only", "endings"], &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("endings/closed-before-answer"), "{ended:?}");
    assert!(!ended.stdout.contains("requests/"), "{ended:?}");
}

#[test]
fn a_baseline_accepts_known_findings() {
    let scratch = crate::support::Scratch::new();
    let path = scratch.path("known.txt").display().to_string();
    let only = ["--over", "tcp", "--only", "error-plain"];
    let mutant = |flags: &[&str]| {
        let mut command = crate::support::antiphon();
        command.env(super::mutant::FAULT, "errors-are-results").arg("check-client");
        command.args(only).args(flags).arg("--").args(client("mutant::client"));
        crate::support::run(&mut command, b"")
    };
    assert_eq!(mutant(&[]).code, Some(1));
    assert_eq!(mutant(&["--baseline", &path, "--update-baseline"]).code, Some(0));
    assert_eq!(mutant(&["--baseline", &path]).code, Some(0));
}

/// Each report format contains the finding.
#[test]
fn every_format_has_the_finding() {
    for (format, sign) in [
        ("text", "failed error-plain"),
        ("json", "\"verdict\": \"failed\""),
        ("junit", "<failure"),
        ("tap", "not ok"),
    ] {
        let mut command = crate::support::antiphon();
        command.env(super::mutant::FAULT, "errors-are-results").arg("check-client");
        command.args(["--over", "tcp", "--only", "error-plain", "--format", format, "--"]);
        let ended = crate::support::run(command.args(client("mutant::client")), b"");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains(sign), "{format}: {ended:?}");
    }
}
