//! Clients with one fault each. The scenario for that fault finds it.

use super::mutant::FAULT;
use super::{LONG, client, judged};
use crate::checking::side_by_side;
use crate::support::{antiphon, run_within};

/// The fault, the transport, the scenario for it, and the verdict.
type Mutant = (&'static str, &'static str, &'static str, &'static str);

const MUTANTS: [Mutant; 38] = [
    ("no-jsonrpc", "tcp", "request-jsonrpc", "failed"),
    ("version-1", "tcp", "request-jsonrpc", "failed"),
    ("null-params", "tcp", "request-params", "failed"),
    ("number-as-method", "tcp", "request-method", "failed"),
    ("more-members", "tcp", "request-members", "differs"),
    ("reserved-name", "tcp", "reserved-names", "differs"),
    ("same-ids", "tcp", "ids-unique", "failed"),
    ("null-id", "tcp", "id-null", "warned"),
    ("half-id", "tcp", "id-fraction", "warned"),
    ("array-id", "tcp", "request-id", "failed"),
    ("members-twice", "tcp", "members-once", "warned"),
    ("latin-1", "tcp", "request-json", "failed"),
    ("no-newline", "tcp", "line-ended", "warned"),
    ("fixed-places", "tcp", "members-reordered", "failed"),
    ("no-escapes", "tcp", "escapes", "failed"),
    ("one-read", "tcp", "byte-by-byte", "failed"),
    ("one-read", "tcp", "answers-joined", "failed"),
    ("small-buffer", "tcp", "result-large", "warned"),
    ("too-deep", "tcp", "result-deep", "warned"),
    ("null-is-none", "tcp", "result-null", "failed"),
    ("false-is-none", "tcp", "result-false", "failed"),
    ("any-id", "tcp", "answer-of-another", "failed"),
    ("ids-as-text", "tcp", "id-of-another-type", "warned"),
    ("in-order", "tcp", "answers-reversed", "failed"),
    ("no-strangers", "tcp", "stranger-first", "warned"),
    ("errors-are-results", "tcp", "error-plain", "failed"),
    ("result-first", "tcp", "result-and-error", "warned"),
    ("zero-is-fine", "tcp", "error-code-zero", "failed"),
    ("no-message-is-fine", "tcp", "error-message-empty", "failed"),
    ("neither-is-fine", "tcp", "neither-result-nor-error", "failed"),
    ("any-version", "tcp", "jsonrpc-missing", "warned"),
    ("end-is-fine", "tcp", "closed-before-answer", "failed"),
    ("no-notifications", "tcp", "notification-passed-over", "warned"),
    ("answers-notifications", "tcp", "notification-unanswered", "failed"),
    ("requests-are-answers", "tcp", "request-is-no-answer", "failed"),
    ("half-a-reply", "tcp", "reply-shape", "failed"),
    ("half-a-reply", "tcp+header", "reply-shape", "failed"),
    ("in-order", "tcp+header", "answers-reversed", "failed"),
];

/// Like [`MUTANTS`], for the HTTP and WebSocket clients.
const OF_THE_WEB: [Mutant; 16] = [
    ("no-type", "http", "http-content-type", "warned"),
    ("no-host", "http", "http-host", "failed"),
    ("wants-pages", "http", "http-accept", "warned"),
    ("no-chunks", "http", "http-chunked", "failed"),
    ("one-case", "http", "http-header-names", "failed"),
    ("takes-interim", "http", "http-interim", "failed"),
    ("nothing-is-fine", "http", "http-204", "failed"),
    ("unmasked", "ws", "ws-masked", "failed"),
    ("binary", "ws", "ws-text", "warned"),
    ("old-version", "ws", "ws-handshake", "failed"),
    ("no-proof", "ws", "ws-unproven", "failed"),
    ("no-pong", "ws", "ws-ping", "failed"),
    ("no-fragments", "ws", "ws-fragments", "failed"),
    ("takes-masked", "ws", "ws-masked-answer", "failed"),
    ("any-bits", "ws", "ws-reserved-bits", "failed"),
    ("no-goodbye", "ws", "ws-close-answered", "failed"),
];

/// Clients that hang or crash, by the kind of the finding.
const ENDINGS: [Mutant; 5] = [
    ("waits-for-ever", "tcp", "closed-before-answer", "silent"),
    ("tries-for-ever", "tcp", "closed-at-once", "silent"),
    ("floods", "tcp", "answer-late", "silent"),
    ("crashes-on-data", "tcp", "error-data", "crashed"),
    ("makes-room", "tcp+header", "header-length-huge", "crashed"),
];

/// The client without a fault passes, so a finding is the fault.
#[test]
fn the_clients_themselves_are_in_order() {
    for over in ["tcp", "tcp+header", "http", "ws"] {
        let judged = judged(&["-j8", "--over", over], &client(kind(over)));
        let found = ["failed", "warned"].map(|verdict| judged.names(verdict)).concat();
        assert!(found.is_empty(), "{over}: {}", judged.findings());
        assert!(judged.count("passed") > 60, "only {} are run", judged.count("passed"));
    }
}

#[test]
fn every_mutant_is_caught_by_the_scenario_that_names_its_fault() {
    each(&[&MUTANTS[..], &OF_THE_WEB].concat(), |(fault, over, scenario, verdict)| {
        // A message check needs the scenario in which the fault shows.
        let shows = if scenario == "reply-shape" { "request-answered" } else { scenario };
        let case = mutant(fault, over, &["--only", scenario, "--only", shows], scenario);
        assert_eq!(case["verdict"], verdict, "{fault}: {case:#}");
    });
}

#[test]
fn hangs_and_crashes_have_their_own_kind() {
    each(&ENDINGS, |(fault, over, scenario, kind)| {
        // A client that hangs uses up the timeout, and one that works must not.
        let case = mutant(fault, over, &["--only", scenario, "--timeout", "5s"], scenario);
        let found = (&case["verdict"], &case["fault"]);
        assert_eq!(found, (&"failed".into(), &kind.into()), "{fault}: {case:#}");
    });
}

/// Does this for each mutant, side by side.
fn each(mutants: &[Mutant], caught: impl Fn(Mutant) + Sync) {
    let caught = &caught;
    let runs: Vec<_> = mutants.iter().map(|mutant| (mutant.0, move || caught(*mutant))).collect();
    side_by_side(&runs);
}

/// Returns the client for this wire.
fn kind(over: &str) -> &'static str {
    if over.starts_with("tcp") { "mutant::client" } else { "web::client" }
}

/// Runs a client with this fault. Returns the result of that scenario.
fn mutant(fault: &str, over: &str, flags: &[&str], scenario: &str) -> serde_json::Value {
    let mut command = antiphon();
    command.args(["check-client", "--format", "json", "--over", over]).args(flags).arg("--");
    // A backtrace of this large program takes seconds on a busy machine.
    command.args(client(kind(over))).env(FAULT, fault).env("RUST_BACKTRACE", "0");
    let ended = run_within(&mut command, b"", LONG);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{fault}: {error}: {ended:?}"));
    let cases = report["cases"].as_array().unwrap();
    cases.iter().find(|case| case["name"] == scenario).unwrap().clone()
}
