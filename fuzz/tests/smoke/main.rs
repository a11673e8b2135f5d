//! Every target over its saved corpus, the messages of the transcripts, and mutations of both.
//!
//! It needs no fuzzing engine and no nightly compiler, and every run is the same. `FUZZ_SEED` selects other
//! mutations, and `FUZZ_MUTATIONS` multiplies their number.

mod mutator;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;

use antiphon_fuzz::{TARGETS, Target, wire};

use mutator::Mutator;

#[test]
fn line() {
    run("line", 20_000);
}

#[test]
fn header() {
    run("header", 20_000);
}

#[test]
fn values() {
    run("values", 20_000);
}

#[test]
fn websocket() {
    run("websocket", 30_000);
}

#[test]
fn decode() {
    run("decode", 60_000);
}

#[test]
fn differential() {
    run("differential", 60_000);
}

#[test]
fn server() {
    run("server", 20_000);
}

#[test]
fn http() {
    run("http", 30_000);
}

#[test]
fn http_client() {
    run("http_client", 30_000);
}

#[test]
fn endpoint() {
    run("endpoint", 100_000);
}

#[test]
fn lsp_text() {
    run("lsp_text", 5_000);
}

#[test]
fn every_target_is_run() {
    let source = include_str!("main.rs");
    for Target { name, .. } in TARGETS {
        assert!(source.contains(&format!("run(\"{name}\", ")), "{name} has no smoke run");
        let binary = home().join("fuzz_targets").join(name).with_extension("rs");
        assert!(binary.exists(), "{} is missing", binary.display());
    }
}

/// Runs a target over the saved inputs, and over this many mutations of them.
fn run(name: &str, mutations: u64) {
    hear_of_panics();
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    let inputs = inputs(target);
    inputs.iter().for_each(|(what, input)| try_input(target, what, input));
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, input)| input).collect();
    let words = mutator::words(&home().join("words.dict"));
    let seed = number("FUZZ_SEED").unwrap_or(0);
    for turn in 0..mutations * number("FUZZ_MUTATIONS").unwrap_or(1) {
        let input = Mutator::new(seed, turn).mutated(&inputs, &words);
        try_input(target, &format!("mutation {turn} of FUZZ_SEED={seed}"), &input);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The saved corpus, and the messages of the transcripts.
fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let directory = home().join("corpus").join(target.name);
    let entries = std::fs::read_dir(&directory).expect("each target has a corpus");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    let saved = files.iter().map(|file| {
        (file.display().to_string(), std::fs::read(file).expect("a file that can be read"))
    });
    let messages = wire::messages(&home().join("../testdata/wire"));
    assert!(messages.len() > 100, "the transcripts send more than {} messages", messages.len());
    let told = messages
        .iter()
        .enumerate()
        .map(|(at, message)| (format!("message {at} of the transcripts"), (target.seed)(message)));
    saved.chain(told).collect()
}

/// A check fails if it panics, or if a panic inside it is caught.
fn try_input(target: &Target, what: &str, input: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let heard = HEARD.take();
    if outcome.is_err() || heard.is_some() {
        let file = kept(target, input);
        panic!(
            "{} does not hold for {what}\n{}\ninput: \"{}\"\nkept as {}",
            target.name,
            heard.unwrap_or_default(),
            input.escape_ascii(),
            file.display()
        );
    }
}

/// Saves the input of a failure, for the binaries of `fuzz/run` or for the corpus.
fn kept(target: &Target, input: &[u8]) -> PathBuf {
    let directory = home().join("artifacts").join(target.name);
    let file = directory.join("smoke");
    let kept = std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&file, input));
    kept.expect("a directory that can be written to");
    file
}

thread_local! {
    /// The message of the last panic on this thread.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn hear_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let said = panic.to_string();
            // The failure of the test itself goes to the default hook.
            if said.contains("does not hold for") {
                return usual(panic);
            }
            HEARD.set(Some(said));
        }));
    });
}
