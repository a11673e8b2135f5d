//! Compile errors of invalid services.

use std::env;
use std::process::Command;

/// The toolchain that produced the messages in `ui/compiler`.
const MESSAGES_OF: &str = "rustc 1.95.";

/// Skips these tests if set. A run with several sets of features sets it for all but one: each run
/// builds the library again, and the messages are equal.
const ELSEWHERE: &str = "ANTIPHON_UI_ELSEWHERE";

/// `ui/own` has the macro's own messages, which every toolchain prints. `ui/compiler` has messages of the
/// compiler, which change with the toolchain.
#[test]
fn compile_errors_point_to_the_users_code() {
    if env::var_os(ELSEWHERE).is_some() {
        println!("skipped: `{ELSEWHERE}` is set");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/macros/ui/own/*.rs");
    let version = Command::new("rustc").arg("--version").output().unwrap().stdout;
    if String::from_utf8_lossy(&version).starts_with(MESSAGES_OF) {
        cases.compile_fail("tests/macros/ui/compiler/*.rs");
    } else {
        println!("skipped: the compiler's messages are those of {MESSAGES_OF}x");
    }
}
