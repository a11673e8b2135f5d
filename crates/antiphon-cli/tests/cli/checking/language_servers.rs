//! `check --profile lsp` with language servers: the example of antiphon-lsp, clangd and pylsp.

use std::path::PathBuf;

use super::{Judged, judged};
use crate::interop::script;

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

/// More time than the default budget, which is for a machine that has nothing else to do.
const PATIENT: [&str; 2] = ["--budget", "3m"];

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

/// clangd ends at some invalid messages, leaves others without a response, and answers some late: the run
/// does all cases, and blames no case of the profile for it.
#[test]
#[ignore = "needs interop/setup"]
fn a_run_against_clangd_is_complete() {
    let judged =
        judged(&[&["exec+header:clangd --log=error", "--profile", "lsp"], &PATIENT[..]].concat());
    assert!(!is_cut_short(&judged), "{}", judged.findings());
    assert_eq!(judged.code, Some(1));
    assert_eq!(judged.report["cases"][0]["group"], "lsp");
    assert_eq!(of_profile(&judged, "warned"), ["lsp-header-case", "lsp-shutdown"]);
    assert_eq!(of_profile(&judged, "passed").len(), 11, "{}", judged.findings());
    assert!(judged.names("failed").contains(&"example-invalid-json"), "it is left unanswered");
}

/// pylsp leaves most invalid messages without a response.
#[test]
#[ignore = "needs interop/setup"]
fn a_run_against_pylsp_is_complete() {
    let endpoint = format!("exec+header:{}", script(".venv/bin/pylsp").display());
    let judged = judged(&[&[&endpoint, "--profile", "lsp"], &PATIENT[..]].concat());
    assert!(!is_cut_short(&judged), "{}", judged.findings());
    assert_eq!(judged.report["cases"][0]["group"], "lsp");
    for case in ["lsp-cancel-unknown", "lsp-unknown-method"] {
        assert_eq!(judged.verdict(case), "passed", "{}", judged.findings());
    }
}
