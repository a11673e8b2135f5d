//! ARCHITECTURE.md names only files and functions that exist.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path of a file as the document writes it.
fn source(name: &str) -> PathBuf {
    match name.strip_prefix("core:") {
        Some(name) => root().join("crates/antiphon-core/src").join(name),
        None => root().join("crates/antiphon/src").join(name),
    }
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the code paths: the files of the first cell, the functions of the second.
fn steps(document: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let (_, paths) = document.split_once("## Five code paths").unwrap();
    let (paths, _) = paths.split_once("## Connections").unwrap();
    let rows = paths.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let (files, functions) = (cells.next().unwrap(), cells.next().unwrap());
        (quoted(files).collect(), quoted(functions).collect())
    })
    .collect()
}

#[test]
fn each_step_of_a_code_path_is_a_function_of_its_file() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let steps = steps(&document);
    assert!(steps.len() > 20, "the tables are not where they were");
    for (files, functions) in steps {
        let named = files.iter().chain(&functions).filter(|name| name.ends_with(".rs"));
        let text: String = named
            .map(|file| {
                let read = fs::read_to_string(source(file));
                read.unwrap_or_else(|error| panic!("{file}: {error}"))
            })
            .collect();
        for function in functions.iter().filter(|name| !name.ends_with(".rs")) {
            let name = function.rsplit("::").next().unwrap();
            let found = [format!("fn {name}("), format!("fn {name}<")];
            assert!(found.iter().any(|it| text.contains(it)), "no `{function}` in {files:?}");
        }
    }
}

#[test]
fn each_file_that_the_document_names_exists() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let files = quoted(&document).filter(|name| name.starts_with("core:") && name.ends_with(".rs"));
    for file in files {
        assert!(source(file).exists(), "{file}");
    }
}

/// The features of the manifest, in the table of the crate's documentation.
#[test]
fn the_table_of_features_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    let lines = features.lines().filter(|line| !line.starts_with('#'));
    let names: BTreeSet<&str> = lines
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .filter(|n| *n != "default")
        .collect();

    let docs = fs::read_to_string(root.join("docs/crate.md")).unwrap();
    let (_, table) = docs.split_once("# Features\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    assert_eq!(names, documented);
}
