//! `check --profile lsp` with language servers: the example of antiphon-lsp, clangd, pylsp and
//! typescript-language-server.

use std::path::PathBuf;

use serde_json::Value;

use super::{Judged, judged};
use crate::interop::script;
use crate::support::Scratch;

/// Returns whether the time limit has ended the run.
fn is_cut_short(judged: &Judged) -> bool {
    judged.report["cases"].to_string().contains("the time limit was reached")
}

/// Returns the names of the cases of the profile with this verdict.
fn of_profile<'a>(judged: &'a Judged, verdict: &str) -> Vec<&'a str> {
    judged.names(verdict).into_iter().filter(|name| name.starts_with("lsp-")).collect()
}

/// The example of antiphon-lsp, beside this test.
fn typos_server() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let server = folder.join("examples/typos_server");
    assert!(server.exists(), "typos_server is missing: run cargo build -p antiphon-lsp --examples");
    server
}

#[test]
#[ignore = "needs interop/setup"]
fn the_example_passes_every_case() {
    let endpoint = format!("exec+header:'{}'", typos_server().display());
    let place =
        r#"{"textDocument": {"uri": "file:///closed"}, "position": {"line": 0, "character": 0}}"#;
    let method = ["--method", "textDocument/hover", "--params", place];
    let judged = judged(&[&[&endpoint, "--profile", "lsp"], &method[..]].concat());
    assert_eq!((judged.code, &*judged.findings()), (Some(0), ""));
    assert_eq!(of_profile(&judged, "passed").len(), 13);
    assert!(judged.count("passed") > 200 && !is_cut_short(&judged));
}

/// Checks a language server within the default budget. The budget may end the run, but not before all cases of the
/// profile have been run.
fn checked(command: &str) -> Judged {
    let judged = judged(&[&format!("exec+header:{command}"), "--profile", "lsp"]);
    assert_eq!(judged.code, Some(1), "{}", judged.findings());
    let cases = judged.report["cases"].as_array().unwrap();
    let is_other = |case: &Value| case["group"] != "lsp";
    let (own, others) = cases.split_at(cases.iter().position(is_other).unwrap_or(cases.len()));
    assert!(!own.is_empty() && others.iter().all(is_other), "the profile is first");
    let own = serde_json::json!(own).to_string();
    assert!(!own.contains("the time limit was reached"), "{own}");
    judged
}

/// clangd ends at some invalid messages, leaves others without a response, and answers some late. No case of the
/// profile is blamed for it.
#[test]
#[ignore = "needs interop/setup"]
fn clangd_has_run_the_cases_of_the_profile() {
    let judged = checked("clangd --log=error");
    assert_eq!(of_profile(&judged, "warned"), ["lsp-header-case", "lsp-shutdown"]);
    assert_eq!(of_profile(&judged, "passed").len(), 11, "{}", judged.findings());
}

/// pylsp leaves most invalid messages without a response. It has no method that the run knows.
#[test]
#[ignore = "needs interop/setup"]
fn pylsp_has_run_the_cases_of_the_profile() {
    let judged = checked(&script(".venv/bin/pylsp").display().to_string());
    assert_eq!(of_profile(&judged, "failed"), ["lsp-content-type-first"], "{}", judged.findings());
    assert_eq!(of_profile(&judged, "warned"), ["lsp-header-case", "lsp-initialize-twice"]);
    assert_eq!(of_profile(&judged, "passed").len(), 7, "{}", judged.findings());
    let without_method = ["lsp-string-id", "lsp-largest-id", "lsp-shutdown"];
    assert_eq!(of_profile(&judged, "not-run"), without_method);
}

#[test]
#[ignore = "needs interop/setup"]
fn typescript_has_run_the_cases_of_the_profile() {
    let program = script("node_modules/typescript-language-server/lib/cli.mjs");
    let judged = checked(&format!("node '{}' --stdio", program.display()));
    assert_eq!(of_profile(&judged, "warned"), ["lsp-initialize-twice", "lsp-shutdown"]);
    assert_eq!(of_profile(&judged, "passed").len(), 11, "{}", judged.findings());
}

const SLOW_START: &str = r#"
sleep 1
while IFS= read -r line; do
    case $line in *'"id"'*) printf '{"jsonrpc":"2.0","result":19,"id":%s\n' "${line##*'"id":'}" ;; esac
done
"#;

/// The first response waits for the start of the process, so it has more time than the others.
#[test]
fn a_server_may_start_slowly() {
    let scratch = Scratch::new();
    let (program, cases) = (scratch.path("slow.sh"), scratch.path("slow.wire"));
    std::fs::write(&program, SLOW_START).unwrap();
    let call = "--> {\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}";
    let result = "<-- {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}";
    let case = format!("@ section 5\n== called: a call is answered\n{call}\n{result}\n");
    std::fs::write(&cases, case).unwrap();
    let endpoint = format!("exec:sh {}", program.display());
    let flags = ["--method", "a", "--profile", "lsp", "--timeout", "300ms"];
    let judged = judged(&[&[&*endpoint, cases.to_str().unwrap()], &flags[..]].concat());
    assert_eq!((judged.code, judged.verdict("called")), (Some(0), "passed"));
}
