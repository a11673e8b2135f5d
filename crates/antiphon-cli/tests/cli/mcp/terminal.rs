//! The commands at a pseudo-terminal.

use antiphon_mcp::{McpServer, RequestContext, ServerTool};

use super::servers::McpHttp;
use crate::support::{Scratch, Terminal};

fn terminal(home: &Scratch, words: &[&str]) -> Terminal {
    Terminal::start(home.path("").as_os_str(), &[&["mcp"], words].concat())
}

#[test]
fn a_form_is_shown_and_checked() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    for revision in ["2026-07-28", "2025-11-25"] {
        let words =
            ["call", &server.url, "test_elicitation", "message=Who?", "--revision", revision];
        let mut terminal = terminal(&home, &words);
        terminal.expect("The server asks: Who?");
        // The order is that of the server.
        terminal.expect("username");
        terminal.press("ada\r");
        terminal.expect("email (User's email address) [string]: ");
        // Longer than it takes until a progress line is due, which would overwrite the question.
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 1_200 {
            terminal.press("\r");
            terminal.expect("at least 1 characters");
            terminal.expect("email");
        }
        terminal.press("a@b.example\r");
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(0), "{seen}");
        assert!(seen.contains("ada") && seen.contains("accept"), "{seen}");
        assert!(!seen.contains("waiting for"), "{seen}");
    }
}

#[test]
fn a_form_is_declined() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    let mut terminal = terminal(&home, &["call", &server.url, "test_elicitation", "message=Who?"]);
    terminal.expect("username");
    terminal.press("!decline\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("decline"), "{seen}");
}

#[test]
fn ctrl_c_ends_a_form_and_the_command() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    let mut terminal = terminal(&home, &["call", &server.url, "test_elicitation", "message=Who?"]);
    terminal.expect("username");
    terminal.press("\u{3}");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
}

#[test]
fn choices_are_checked_and_defaults_are_taken() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    let words = ["call", &server.url, "test_elicitation_sep1034_defaults"];
    let mut terminal = terminal(&home, &words);
    for (field, keys) in [
        ("age", "x\r41\r"),
        ("name", "\r"),
        ("score", "\r"),
        ("status", "no\rpending\r"),
        ("verified", "n\r"),
    ] {
        terminal.expect(&format!("{field} ["));
        terminal.press(keys);
    }
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    for expected in ["41", "John Doe", "95.5", "pending", "false", "`no` is not one of"] {
        assert!(seen.contains(expected), "{expected}: {seen}");
    }
}

#[test]
fn binary_content_is_not_printed() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    let (code, seen) = terminal(&home, &["read", &server.url, "test://static-binary"]).end();
    assert_eq!(code, Some(2), "{seen}");
    assert!(seen.contains("-o FILE"), "{seen}");
    let (code, seen) = terminal(&home, &["call", &server.url, "test_image_content"]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("[image, image/png, ") && seen.contains("--save FOLDER"), "{seen}");
}

#[test]
fn control_characters_of_a_server_are_escaped() {
    const EVIL: &str = "a\u{1b}]0;title\u{7}b\u{9b}31m";
    let tool = ServerTool::new("evil", |(): (), cx: RequestContext| async move {
        cx.log(antiphon_mcp::types::LoggingLevel::Error, EVIL).await;
        cx.progress(1.0, None, Some(EVIL)).await;
        EVIL
    });
    let server = McpServer::builder(EVIL, "1").instructions(EVIL).tool(tool.description(EVIL));
    let (server, home) = (McpHttp::start(server.build()), Scratch::new());
    for words in
        [&["call", &server.url, "evil", "-v", "--log-level", "debug"][..], &["list", &server.url]]
    {
        let (code, seen) = terminal(&home, words).end();
        assert_eq!(code, Some(0), "{seen}");
        assert!(seen.contains(r"\u{1b}]0;title"), "{seen:?}");
        assert!(!seen.contains("\u{1b}]0;") && !seen.contains('\u{9b}'), "{seen:?}");
    }
}

#[test]
fn a_list_is_a_table() {
    let (server, home) = (McpHttp::everything(), Scratch::new());
    let (code, seen) = terminal(&home, &["list", &server.url]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("test_elicitation(message)") && !seen.contains('\t'), "{seen}");
}
