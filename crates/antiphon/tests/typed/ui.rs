//! What is said at the user's line when a contract is wrong.

use std::process::Command;

/// The toolchain whose words stand in `ui/compiler`.
const WORDS_OF: &str = "rustc 1.95.";

/// Our own words, which every toolchain repeats; and the compiler's, which change with it, and with the
/// types that are around.
#[test]
fn errors_stand_at_the_users_line() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/typed/ui/own/*.rs");
    let version = Command::new("rustc").arg("--version").output().unwrap().stdout;
    let words_of = String::from_utf8_lossy(&version).starts_with(WORDS_OF);
    if words_of && !cfg!(feature = "openrpc") {
        cases.compile_fail("tests/typed/ui/compiler/*.rs");
    } else {
        println!("passed over: the compiler's words are those of {WORDS_OF}x, without `openrpc`");
    }
}
