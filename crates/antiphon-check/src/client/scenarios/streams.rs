//! Line ends and header blocks of raw streams.

use super::super::scenario::{HEADER, LINE, Scenario, ServerAction};

pub(super) fn responses() -> Vec<Scenario> {
    vec![
        Scenario::accepts("line-crlf", "a line may end with a carriage return and a newline")
            .should()
            .over(LINE)
            .section("RFC 8259 2")
            .why("A carriage return is white space, and servers on Windows write it.")
            .acts(|received, _| {
                vec![ServerAction::Send(format!("{}\r\n", received.ordinary()).into_bytes())]
            }),
        Scenario::accepts("header-content-type", "a header block may have a Content-Type")
            .over(HEADER)
            .section("LSP headerPart")
            .why("It may precede or follow the Content-Length.")
            .acts(|received, _| {
                let kind = "Content-Type: application/vscode-jsonrpc; charset=utf-8";
                vec![ServerAction::Send(block(&[kind], "Content-Length", &received.ordinary()))]
            }),
        Scenario::accepts("header-names", "header names are case-insensitive")
            .should()
            .over(HEADER)
            .section("LSP headerPart")
            .why("The header part follows the rules of HTTP.")
            .acts(|received, _| {
                vec![ServerAction::Send(block(&[], "content-length", &received.ordinary()))]
            }),
    ]
}

pub(super) fn endings() -> Vec<Scenario> {
    vec![
        Scenario::rejects(
            "header-without-length",
            "a header block without a length ends the connection",
        )
        .over(HEADER)
        .section("LSP headerPart")
        .why("The end of the message is unknown.")
        .acts(|received, _| {
            let text = format!("Content-Type: application/json\r\n\r\n{}", received.ordinary());
            ServerAction::then_close(ServerAction::Send(text.into_bytes()))
        }),
        Scenario::rejects("header-length-huge", "the announced bytes may never arrive")
            .over(HEADER)
            .section("LSP headerPart")
            .why("A client that allocates the announced length can be crashed by a server.")
            .acts(|received, _| {
                let text =
                    format!("Content-Length: 999999999999999\r\n\r\n{}", received.ordinary());
                ServerAction::then_close(ServerAction::Send(text.into_bytes()))
            }),
    ]
}

fn block(before: &[&str], length: &str, message: &str) -> Vec<u8> {
    let before: String = before.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{before}{length}: {}\r\n\r\n{message}", message.len()).into_bytes()
}
