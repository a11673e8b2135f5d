//! The committed files are those that the generator writes.

use std::fs;
use std::path::Path;

use crate::generate::render;

#[test]
fn the_generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, text) in render::files(root).unwrap() {
        let committed = fs::read_to_string(root.join("src/generated").join(name)).unwrap();
        let remedy = "run `cargo run` in crates/antiphon-lsp/generate";
        assert!(committed == text, "src/generated/{name} is not current: {remedy}");
    }
}
