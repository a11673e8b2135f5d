//! The programs on the pages of `docs/`: each is one that is compiled.

fn document(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `interop/` compiles the program with tower-lsp.
#[test]
fn the_compared_server_is_the_one_that_is_compiled() {
    let program = document("interop/tower-lsp/src/main.rs");
    let (_, shown) = program.split_once("\n\n").unwrap();
    let page = document("docs/coming-from-tower-lsp.md");
    assert!(page.contains(shown), "the page does not show interop/tower-lsp/src/main.rs as it is");
}

/// The doctests of this crate compile `docs/crate.md`. The page has the same programs, but the library whose
/// doctests compile the page does not know this crate.
#[test]
fn the_programs_of_the_dialect_are_those_that_are_compiled() {
    let page = document("docs/dialects.md");
    let (_, section) = page.split_once("\n## LSP\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let compiled = document("crates/antiphon-lsp/docs/crate.md");
    let programs: Vec<&str> =
        section.split("```").filter_map(|it| it.strip_prefix("rust,ignore")).collect();
    assert_eq!(programs.len(), 2);
    for program in programs {
        assert!(compiled.contains(program), "docs/crate.md does not compile this:{program}");
    }
}
