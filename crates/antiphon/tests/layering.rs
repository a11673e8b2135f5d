//! Checks the order of the layers: a module uses only modules to its left.
//!
//! The test reads the `use crate::` paths of the sources. A path to a module on the right is a step back.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers from left to right, each with its modules in order. A module uses only modules before
/// it, so there is no cycle, within a layer either.
const LAYERS: [(&str, &[&str]); 8] = [
    ("io", &["same_type", "log_excerpt", "catch_unwind", "io"]),
    (
        "service vocabulary",
        &[
            "error",
            "connection",
            "tap",
            "dialect",
            "identity",
            "current_trace",
            "invocation",
            "subscription",
            "call",
            "context",
            "params",
            "endpoint",
            "service",
            "per_connection",
            "openrpc",
            "router",
        ],
    ),
    ("layer", &["layer"]),
    ("engine", &["engine"]),
    ("peer", &["peer"]),
    ("transport", &["transport"]),
    ("client and server", &["client", "server"]),
    ("macro support", &["__private", "macro_support"]),
];

/// Names at the root of the crate that are not modules.
const ROOT: [&str; 1] = ["BoxFuture"];

/// The position of a module in the order.
fn position(module: &str) -> usize {
    let mut modules = LAYERS.iter().flat_map(|(_, modules)| *modules);
    let found = modules.position(|known| *known == module);
    found.unwrap_or_else(|| panic!("`{module}` is in no layer: add it to LAYERS"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a source uses by `crate::`, outside comments and unit tests.
fn used(source: &str) -> BTreeSet<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut used = BTreeSet::new();
    for line in code {
        let mut rest = line;
        while let Some((_, behind)) = rest.split_once("crate::") {
            let name: String =
                behind.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
            // `use crate::{a, b}` would hide its modules from this test.
            assert!(!name.is_empty(), "name each module in a `use crate::` of its own: {line}");
            if !ROOT.contains(&name.as_str()) {
                used.insert(name);
            }
            rest = behind;
        }
    }
    used
}

/// The steps back of one source.
fn steps_back(file: &str, source: &str) -> Vec<String> {
    let module = file.split(['/', '\\']).next().unwrap().trim_end_matches(".rs");
    let own = position(module);
    let back = |used: &String| (position(used) > own).then(|| format!("{file} uses {used}"));
    used(source).iter().filter_map(back).collect()
}

#[test]
fn a_module_uses_only_modules_to_its_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100, "the sources are not where they were");
    let mut back = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if file != "lib.rs" {
            back.extend(steps_back(&file, &fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(back.is_empty(), "steps back in the order of the layers:\n{}", back.join("\n"));
}

#[test]
fn a_step_back_is_found() {
    let step = "use crate::server::Server;\n";
    assert_eq!(steps_back("peer/reader.rs", step), ["peer/reader.rs uses server"]);
    assert_eq!(
        steps_back("server/mod.rs", "use crate::peer::ConnectionConfig;\n"),
        Vec::<String>::new()
    );
    let inline = "fn f() { crate::transport::tcp::facts(); }\n// crate::server is only named\n";
    assert_eq!(steps_back("engine/run.rs", inline), ["engine/run.rs uses transport"]);
}
