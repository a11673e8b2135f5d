//! Whether `antiphon check` tells right from wrong in servers that other people wrote.
//!
//! What each of them does was found out by hand, message by message, and judged by the specification's
//! text. A fault that is not found fails here, and so does one that is made up.

use super::{Judged, judged};
use crate::interop::{Foreign, node, python};

/// Ids beyond 2^53 come back changed, a null id is taken for a Notification, a batch inside a batch is
/// never answered, and what is no JSON gets a page of text.
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

/// One invalid entry costs a batch all its answers, and NaN is taken for JSON.
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

/// The groups that the cases above are of: the others would only take time.
const GROUPS: [&str; 6] = ["examples", "ids", "envelope", "batch", "parse", "notifications"];

fn check(server: &Foreign) -> Judged {
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let mut args = vec![&*endpoint, "--timeout", "1s"];
    args.extend(GROUPS.iter().flat_map(|group| ["--only", group]));
    judged(&args)
}

/// These cases of a group failed, and no others.
#[track_caller]
fn failed(judged: &Judged, group: &str, names: &[&str]) {
    let (mut expected, mut found) = (names.to_vec(), judged.names("failed"));
    found.retain(|name| judged.case(name)["group"] == group);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "of {group}: {}", judged.findings());
}

/// These cases have this verdict.
#[track_caller]
fn found(judged: &Judged, verdict: &str, names: &str) {
    for name in words(names) {
        assert_eq!(judged.verdict(name), verdict, "{:#}", judged.case(name));
    }
}

fn words(names: &str) -> Vec<&str> {
    names.split_whitespace().collect()
}
