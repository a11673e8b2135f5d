//! Questions of a server that flags answer.

use super::servers::{McpHttp, mcp_at};

fn answered(words: &[&str]) -> Vec<(Option<i32>, String)> {
    let server = McpHttp::everything();
    let ways = server.ways();
    let ended = ways.iter().map(|way| mcp_at("call", way, words));
    ended.map(|ended| (ended.code, format!("{}{}", ended.stdout, ended.stderr))).collect()
}

#[test]
fn a_form_is_filled_in_by_flags() {
    let words = [
        "test_elicitation",
        "message=Who?",
        "--answer",
        "username=ada",
        "--answer",
        "email=a@b.example",
    ];
    for (code, output) in answered(&words) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("ada") && output.contains("The server asks: Who?"), "{output}");
    }
}

#[test]
fn a_form_without_all_answers_is_cancelled() {
    for (code, output) in answered(&["test_elicitation", "message=Who?", "--answer", "username=x"])
    {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("--answer email=TEXT is missing"), "{output}");
    }
}

#[test]
fn a_wrong_answer_is_not_sent() {
    let words = ["test_elicitation_sep1034_defaults", "--answer", "age:=1.5"];
    for (code, output) in answered(&words) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("--answer age: 1.5 is not a valid integer"), "{output}");
        assert!(output.contains("cancel"), "{output}");
    }
}

#[test]
fn a_text_is_read_like_a_line_of_the_form() {
    for (code, output) in answered(&["test_elicitation_sep1034_defaults", "--answer", "age=41"]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("41") && output.contains("accept"), "{output}");
    }
}

#[test]
fn without_answers_the_server_is_told_that_it_cannot_ask() {
    for (code, output) in answered(&["test_elicitation", "message=Who?"]) {
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("elicitation"), "{output}");
    }
}

#[test]
fn a_flag_answers_for_the_model_and_names_roots() {
    for (code, output) in answered(&["test_sampling", "prompt=2+2", "--model-answer", "four"]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("LLM response: four"), "{output}");
    }
    for (code, output) in answered(&["test_roots", "--root", "/a b", "--root", "file:///c"]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("file:///a%20b, file:///c"), "{output}");
    }
}

#[test]
fn logs_of_the_chosen_level_go_to_stderr() {
    for (code, output) in answered(&["test_tool_with_logging", "--log-level", "debug"]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("info: ") || output.contains("info "), "{output}");
    }
}
