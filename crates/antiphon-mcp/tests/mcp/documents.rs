//! The README shows a program that is compiled elsewhere: as an example of the crate's documentation.

/// The first code block of a text that begins with this line.
fn code<'a>(text: &'a str, begin: &str) -> &'a str {
    let (_, code) = text.split_once(begin).unwrap();
    code.split_once("```").unwrap().0
}

#[test]
fn the_server_of_the_readme_is_that_of_the_documentation() {
    let readme = include_str!("../../../../README.md");
    let (_, section) = readme.split_once("## Write an MCP server\n").unwrap();
    let compiled = code(include_str!("../../docs/crate.md"), "```no_run\n");
    assert!(compiled.contains("#[antiphon_mcp::server"), "the example is not where it was");
    assert_eq!(code(section, "```rust,ignore\n"), compiled);
}
