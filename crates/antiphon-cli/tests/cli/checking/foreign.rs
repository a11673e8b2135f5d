//! `antiphon check` against servers of other projects.
//!
//! Their behaviour was examined by hand, message by message, against the text of the specification. A
//! missed fault fails here, and so does a false one.

use super::{Judged, judged};
use crate::interop::{Foreign, node, python};

/// It changes ids above 2^53, treats a null id as a Notification, never responds to a batch inside a batch,
/// and responds to invalid JSON with a text page.
#[test]
fn jayson() {
    let Some(mut server) = node("jayson_server.mjs") else { return };
    let server = Foreign::start(server.args(["http", "0"]));
    let judged = check(&server);
    failed(&judged, "examples", &["example-invalid-json", "example-batch-invalid-json"]);
    let changed = "id-over-double id-max-signed id-over-signed id-max-unsigned id-over-unsigned \
                   id-under-signed id-in-method-not-found";
    let null = ["id-null", "id-null-unknown-method"];
    failed(&judged, "ids", &[&words(changed), &null[..]].concat());
    failed(&judged, "notifications", &["notify-null-id-is-none"]);
    found(&judged, "failed", "batch-null-id batch-nested batch-nested-empty batch-exact-ids");
    found(&judged, "passed", "example-named example-empty-array example-invalid-batch-of-one");
    found(&judged, "passed", "id-zero id-negative id-fraction id-empty-string id-unicode id-true");
    found(
        &judged,
        "passed",
        "batch-scalars-among-valid batch-same-id method-number method-escaped",
    );
    found(&judged, "passed", "notify-with-result notify-unknown");
}

/// One invalid entry rejects the whole batch, and NaN counts as JSON.
#[test]
fn jsonrpcserver() {
    let Some(mut server) = python("jsonrpcserver_http.py") else { return };
    let server = Foreign::start(server.arg("0"));
    let judged = check(&server);
    failed(&judged, "examples", &["example-invalid-batch-of-one", "example-invalid-batch"]);
    failed(&judged, "ids", &[]);
    failed(&judged, "notifications", &[]);
    failed(&judged, "parse", &["parse-nan-id"]);
    found(&judged, "failed", "batch-invalid-among-valid batch-scalars-among-valid batch-bad-id");
    found(&judged, "passed", "example-named example-empty-array example-invalid-json");
    found(
        &judged,
        "passed",
        "id-negative id-over-double id-over-unsigned id-null id-fraction id-true",
    );
    found(&judged, "passed", "batch-null-id batch-exact-ids parse-cut-in-object notify-unknown");
}

/// The groups of the cases above. The other groups would only take time.
const GROUPS: [&str; 6] = ["examples", "ids", "envelope", "batch", "parse", "notifications"];

fn check(server: &Foreign) -> Judged {
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let mut args = vec![&*endpoint, "--timeout", "1s"];
    args.extend(GROUPS.iter().flat_map(|group| ["--only", group]));
    judged(&args)
}

/// Checks that exactly these cases of a group failed.
#[track_caller]
fn failed(judged: &Judged, group: &str, names: &[&str]) {
    let (mut expected, mut found) = (names.to_vec(), judged.names("failed"));
    found.retain(|name| judged.case(name)["group"] == group);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "of {group}: {}", judged.findings());
}

/// Checks that these cases have this verdict.
#[track_caller]
fn found(judged: &Judged, verdict: &str, names: &str) {
    for name in words(names) {
        assert_eq!(judged.verdict(name), verdict, "{:#}", judged.case(name));
    }
}

fn words(names: &str) -> Vec<&str> {
    names.split_whitespace().collect()
}
