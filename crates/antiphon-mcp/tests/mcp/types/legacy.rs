//! The forms that only legacy revisions have, and the extension for tasks.

use antiphon_mcp::types::tasks::{TaskParams, TaskStatus, extension, legacy};
use antiphon_mcp::types::*;
use serde_json::json;

use super::round_trips;

#[test]
fn the_handshake_round_trips() {
    round_trips::<InitializeParams>(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},
            "elicitation":{"form":{},"url":{}},"experimental":{"x":{"y":1}},
            "tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}}}}},
            "clientInfo":{"name":"c","title":"C","version":"1","websiteUrl":"https://example.com",
            "icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]}}"#,
    );
    round_trips::<InitializeResult>(
        r#"{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"completions":{},"prompts":{"listChanged":true},
            "resources":{"subscribe":true,"listChanged":false},"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},
            "serverInfo":{"name":"s","version":"2"},"instructions":"Be kind","_meta":{"k":1},"vendor":[1]}"#,
    );
}

#[test]
fn legacy_output_has_no_modern_members() {
    let written =
        |value: serde_json::Value, expected: &str| assert_eq!(value.to_string(), expected);
    written(serde_json::to_value(ListToolsResult::new(vec![])).unwrap(), r#"{"tools":[]}"#);
    written(serde_json::to_value(EmptyResult::new()).unwrap(), "{}");
    written(
        serde_json::to_value(ReadResourceResult::new(vec![ResourceContents::blob("a:b", b"\0")]))
            .unwrap(),
        r#"{"contents":[{"blob":"AA==","uri":"a:b"}]}"#,
    );
    written(
        serde_json::to_value(CallToolResult::text("ok")).unwrap(),
        r#"{"content":[{"text":"ok","type":"text"}]}"#,
    );
}

#[test]
fn tools_with_task_support_and_requests_for_tasks_round_trip() {
    round_trips::<Tool>(
        r#"{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},
            "annotations":{"title":"T","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,
            "openWorldHint":false}}"#,
    );
    round_trips::<CallToolParams>(r#"{"name":"t","arguments":{"a":1.50},"task":{"ttl":60000}}"#);
    round_trips::<SetLevelParams>(r#"{"level":"warning"}"#);
    round_trips::<SubscribeParams>(r#"{"uri":"file:///a"}"#);
    round_trips::<CancelledParams>(r#"{"requestId":7,"reason":"why"}"#);
}

#[test]
fn url_elicitation_round_trips() {
    round_trips::<ElicitParams>(
        r#"{"mode":"url","message":"Sign in","url":"https://example.com","elicitationId":"e1","_meta":{"a":{}}}"#,
    );
    round_trips::<UrlElicitationRequired>(
        r#"{"elicitations":[{"mode":"url","message":"m","url":"https://example.com","elicitationId":"e1"}],"more":1}"#,
    );
    round_trips::<ElicitationCompleteParams>(r#"{"elicitationId":"e1"}"#);
    round_trips::<ElicitResult>(r#"{"action":"decline","_meta":{"a":1}}"#);
}

#[test]
fn tasks_of_both_forms_round_trip() {
    let times = r#""createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z""#;
    round_trips::<legacy::CreateTaskResult>(&format!(
        r#"{{"task":{{"taskId":"t","status":"working",{times},"ttl":null,"pollInterval":5000}},"_meta":{{"a":1}}}}"#
    ));
    round_trips::<legacy::TaskResult>(&format!(
        r#"{{"taskId":"t","status":"input_required","statusMessage":"m",{times},"ttl":1}}"#
    ));
    round_trips::<legacy::ListTasksResult>(r#"{"tasks":[],"nextCursor":"c"}"#);
    round_trips::<TaskParams>(r#"{"taskId":"t"}"#);
    round_trips::<extension::CreateTaskResult>(&format!(
        r#"{{"resultType":"task","taskId":"t","status":"working",{times},"ttlMs":null,"pollIntervalMs":50}}"#
    ));
    round_trips::<extension::DetailedTask>(&format!(
        r#"{{"resultType":"complete","taskId":"t","status":"completed",{times},"ttlMs":60000,
            "result":{{"content":[],"isError":false}}}}"#
    ));
    round_trips::<extension::DetailedTask>(&format!(
        r#"{{"taskId":"t","status":"input_required",{times},"ttlMs":1,"inputRequests":{{"n":{{"method":"elicitation/create",
            "params":{{"message":"m","requestedSchema":{{"type":"object","properties":{{}}}}}}}}}}}}"#
    ));
    round_trips::<extension::UpdateTaskParams>(
        r#"{"taskId":"t","inputResponses":{"n":{"action":"cancel"}}}"#,
    );
    assert!(TaskStatus::Failed.is_final() && !TaskStatus::InputRequired.is_final());
}

#[test]
fn capabilities_without_modes_mean_forms() {
    let read = |json| serde_json::from_value::<ClientCapabilities>(json).unwrap();
    let implicit = read(json!({"elicitation": {}}));
    assert!(implicit.elicits_forms() && !implicit.elicits_urls());
    let url = read(json!({"elicitation": {"url": {}}}));
    assert!(!url.elicits_forms() && url.elicits_urls());
    assert!(!read(json!({})).elicits_forms());
}
