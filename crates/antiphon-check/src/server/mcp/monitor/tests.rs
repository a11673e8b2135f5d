//! Dialogues, and the rules that they break.

use super::*;
use crate::result::CaseStatus;
use crate::transcript::parse;

/// Runs a dialogue: `>` sends, `<` receives. Returns whether it breaks the rule.
fn breaks(era: McpEra, rule: &str, dialogue: &str) -> bool {
    let violations = Arc::new(Violations::default());
    let capabilities = Json::parse(r#"{"logging":{}}"#).ok();
    let mut monitor = Monitor::new(era, capabilities, &violations);
    for line in dialogue.lines() {
        match line.split_at(1) {
            (">", text) => monitor.sent(text.as_bytes()),
            (_, text) => drop(monitor.received(&ServerEvent::Message(text.as_bytes().to_vec()))),
        }
    }
    let case = &parse("g", &format!("@ section 4\n@ watch {rule}\n== a: b\n")).unwrap()[0];
    let rule = case.facts.watch.unwrap();
    violations.judge(case, rule).status == CaseStatus::Failed
}

fn legacy(rule: &str, dialogue: &str) -> bool {
    breaks(McpEra::Legacy, rule, dialogue)
}

fn modern(rule: &str, dialogue: &str) -> bool {
    breaks(McpEra::Modern, rule, dialogue)
}

#[test]
fn messages_have_a_form() {
    for (rule, message) in [
        ("json", "Server started"),
        ("json", r#"{"jsonrpc":"2.0","jsonrpc":"2.0"}"#),
        ("batch", "[]"),
        ("envelope", "1"),
        ("envelope", r#"{"result":{},"id":1}"#),
        ("envelope", r#"{"jsonrpc":"2.0","id":1}"#),
        ("envelope", r#"{"jsonrpc":"2.0","result":{}}"#),
        ("envelope", r#"{"jsonrpc":"2.0","result":[],"id":1}"#),
        ("envelope", r#"{"jsonrpc":"2.0","result":{},"id":1.5}"#),
        ("envelope", r#"{"jsonrpc":"2.0","error":{"code":1},"id":1}"#),
        ("envelope", r#"{"jsonrpc":"2.0","method":"a","params":[]}"#),
        ("null-id", r#"{"jsonrpc":"2.0","result":{},"id":null}"#),
        (
            "result-or-error",
            r#"{"jsonrpc":"2.0","result":{},"error":{"code":1,"message":""},"id":1}"#,
        ),
        ("server-request", r#"{"jsonrpc":"2.0","method":"roots/list","id":1}"#),
    ] {
        assert!(legacy(rule, &format!("<{message}")), "{message}");
    }
    for message in [
        r#"{"jsonrpc":"2.0","result":{},"id":"a"}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":""},"id":null}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}"#,
        r#"{"jsonrpc":"2.0","method":"ping","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
    ] {
        for rule in ["json", "batch", "envelope", "null-id", "result-or-error", "server-request"] {
            assert!(!legacy(rule, &format!("<{message}")), "{rule}: {message}");
        }
    }
}

#[test]
fn batches_were_allowed_once() {
    let initialize = |version: &str| {
        format!(
            ">{{\"method\":\"initialize\",\"id\":1}}\n<{{\"jsonrpc\":\"2.0\",\"result\":{{\"protocolVersion\":\"{version}\"}},\"id\":1}}\n<[]"
        )
    };
    assert!(!legacy("batch", &initialize("2025-03-26")));
    assert!(legacy("batch", &initialize("2025-06-18")));
}

#[test]
fn progress_belongs_to_a_request_and_grows() {
    const SENT: &str = r#">{"method":"a","params":{"_meta":{"progressToken":7}},"id":1}"#;
    let progress = |token: &str, value: &str| {
        format!(
            "<{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{value}}}}}\n"
        )
    };
    let end = "<{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":1}\n";
    let after = |rest: &str| format!("{SENT}\n{rest}");
    let growing =
        after(&[&progress("7", "0"), &progress("7", "0.5"), &*progress("7", "2"), end].concat());
    for rule in ["progress-token", "progress-grows", "progress-ends"] {
        assert!(!legacy(rule, &growing), "{rule}");
    }
    assert!(legacy("progress-token", &after(&progress("\"7\"", "1"))));
    assert!(legacy("progress-grows", &after(&[progress("7", "1"), progress("7", "1")].concat())));
    assert!(legacy("progress-grows", &after(&progress("7", "\"1\""))));
    assert!(legacy("progress-ends", &after(&[end, &*progress("7", "1")].concat())));
}

#[test]
fn log_messages_have_a_level() {
    let log = |level: &str| {
        format!(
            "<{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"{level}\",\"data\":1}}}}\n"
        )
    };
    let set = ">{\"method\":\"logging/setLevel\",\"params\":{\"level\":\"error\"},\"id\":1}\n";
    let done = "<{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":1}\n";
    assert!(!legacy("log-level", &log("debug")));
    assert!(!legacy("log-level", &[set, &*log("info"), done].concat()), "it may be on its way");
    assert!(legacy("log-level", &[set, done, &*log("info")].concat()));
    assert!(!legacy("log-level", &[set, done, &*log("alert")].concat()));
    assert!(legacy("log-level", &log("loud")));
    let asks = ">{\"method\":\"a\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"info\"}},\"id\":1}\n";
    assert!(modern("log-requested", &log("emergency")));
    assert!(!modern("log-requested", &[asks, &*log("info")].concat()));
    assert!(modern("log-level", &[asks, &*log("debug")].concat()));
    assert!(modern("log-requested", &[asks, done, &*log("info")].concat()));
}

#[test]
fn modern_results_have_a_type_and_hints() {
    let result = |method: &str, result: &str| {
        format!(
            ">{{\"method\":\"{method}\",\"id\":1}}\n<{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":1}}"
        )
    };
    assert!(modern("result-type", &result("a", "{}")));
    let complete = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"public"}"#;
    assert!(!modern("result-type", &result("tools/list", complete)));
    assert!(!modern("cache-hints", &result("tools/list", complete)));
    for without in [
        r#"{"resultType":"complete"}"#,
        r#"{"resultType":"complete","ttlMs":-1,"cacheScope":"public"}"#,
        r#"{"resultType":"complete","ttlMs":1,"cacheScope":"shared"}"#,
    ] {
        assert!(modern("cache-hints", &result("tools/list", without)), "{without}");
        assert!(!modern("cache-hints", &result("tools/call", without)), "{without}");
    }
    assert!(!modern(
        "cache-hints",
        &result("resources/read", r#"{"resultType":"input_required"}"#)
    ));
    assert!(!legacy("result-type", &result("a", "{}")));
}

#[test]
fn reserved_codes_are_those_of_the_specification() {
    let error = |code: &str| {
        format!("<{{\"jsonrpc\":\"2.0\",\"error\":{{\"code\":{code},\"message\":\"\"}},\"id\":1}}")
    };
    for (code, is_broken) in [
        ("-32601", false),
        ("-32020", false),
        ("-32022", false),
        ("-32023", true),
        ("-32099", true),
        ("-32002", true),
        ("-32042", true),
        ("-32001", false),
        ("7", false),
    ] {
        assert_eq!(modern("reserved-code", &error(code)), is_broken, "{code}");
        assert!(!legacy("reserved-code", &error(code)), "{code}");
    }
}

#[test]
fn changes_belong_to_a_subscription() {
    let change = |method: &str, id: &str| {
        format!(
            "<{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}\n"
        )
    };
    let listen = ">{\"method\":\"subscriptions/listen\",\"id\":\"s\"}\n";
    let acknowledged = change("subscriptions/acknowledged", "\"s\"");
    let changed = change("tools/list_changed", "\"s\"");
    assert!(!modern("subscription", &[listen, &acknowledged, &changed].concat()));
    assert!(modern("subscription", &[listen, &changed].concat()));
    assert!(modern("subscription", &[listen, &change("subscriptions/acknowledged", "1")].concat()));
    assert!(modern("subscription", &changed));
    assert!(legacy("list-changed", &changed), "the capability is not declared");
}
