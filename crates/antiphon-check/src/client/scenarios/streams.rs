//! What raw streams allow: ends of lines, and header blocks.

use super::super::scenario::{HEADER, LINE, Scenario, ServerAction};

pub(super) fn responses() -> Vec<Scenario> {
    vec![
        Scenario::accepts("line-crlf", "a line may end with a carriage return and a newline")
            .should()
            .over(LINE)
            .section("RFC 8259 2")
            .why("A carriage return is white space; servers on Windows write it.")
            .acts(|received, _| {
                vec![ServerAction::Send(format!("{}\r\n", received.ordinary()).into_bytes())]
            }),
        Scenario::accepts("header-content-type", "a header block may have a Content-Type")
            .over(HEADER)
            .section("LSP headerPart")
            .why("It may stand before the length, and behind it.")
            .acts(|received, _| {
                let kind = "Content-Type: application/vscode-jsonrpc; charset=utf-8";
                vec![ServerAction::Send(block(&[kind], "Content-Length", &received.ordinary()))]
            }),
        Scenario::accepts("header-names", "header names are the same in any case")
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
        Scenario::rejects("header-without-length", "a header block without a length ends it all")
            .over(HEADER)
            .section("LSP headerPart")
            .why("Where the message ends cannot be known.")
            .acts(|received, _| {
                let text = format!("Content-Type: application/json\r\n\r\n{}", received.ordinary());
                ServerAction::then_close(ServerAction::Send(text.into_bytes()))
            }),
        Scenario::rejects("header-length-huge", "a length that is announced may never come")
            .over(HEADER)
            .section("LSP headerPart")
            .why("A client that makes room for what a server announces can be ended by it.")
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
