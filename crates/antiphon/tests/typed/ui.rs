//! What is said at the user's line when a contract is wrong.

use std::env;
use std::process::Command;

/// The toolchain whose words stand in `ui/compiler`.
const WORDS_OF: &str = "rustc 1.95.";

/// Who runs these tests with several sets of features sets this for all but one: for each the library is
/// built anew, and the words are the same.
const ELSEWHERE: &str = "ANTIPHON_UI_ELSEWHERE";

/// Our own words, which every toolchain repeats; and the compiler's, which change with it, and with the
/// types that are around.
#[test]
fn errors_stand_at_the_users_line() {
    if env::var_os(ELSEWHERE).is_some() {
        println!("passed over: `{ELSEWHERE}` is set");
        return;
    }
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
