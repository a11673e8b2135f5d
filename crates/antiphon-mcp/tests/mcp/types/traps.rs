//! Messages that are easy to misread.

use antiphon::RawJson;
use antiphon_mcp::types::*;
use serde_json::{Value, json};

use super::{rewritten, round_trips};

#[test]
fn a_null_result_is_not_an_absent_one() {
    let null: CallToolResult = from_object(r#"{"content":[],"structuredContent":null}"#).unwrap();
    assert_eq!(null.structured_content, Some(Value::Null));
    round_trips::<CallToolResult>(r#"{"content":[],"structuredContent":null}"#);
    let absent: CallToolResult = from_object(r#"{"content":[]}"#).unwrap();
    assert_eq!(absent.structured_content, None);
    round_trips::<CallToolResult>(r#"{"content":[]}"#);
}

#[test]
fn arguments_keep_their_text() {
    let call: CallToolParams = from_object(r#"{"name":"t","arguments":{"price": 1.50}}"#).unwrap();
    assert_eq!(call.arguments, Some(RawJson::parse(r#"{"price": 1.50}"#).unwrap()));
    assert_eq!(
        from_object::<CallToolParams>(r#"{"name":"t","arguments":null}"#).unwrap().arguments,
        None
    );
    for arguments in ["[]", "\"x\"", "1", "true"] {
        let json = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
        let error = from_object::<CallToolParams>(&json).unwrap_err();
        assert!(error.to_string().contains("`arguments` must be an Object"), "{error}");
    }
}

#[test]
fn unknown_members_are_ignored_in_params_and_kept_in_results_and_descriptions() {
    assert_eq!(
        rewritten::<PaginatedParams>(r#"{"cursor":"c","more":1}"#).unwrap(),
        json!({"cursor": "c"})
    );
    round_trips::<ListToolsResult>(
        r#"{"tools":[],"more":{"a":[1]},"ttlMs":0,"cacheScope":"public"}"#,
    );
    round_trips::<CallToolResult>(r#"{"content":[],"resultType":"com.example/other","more":1}"#);
    round_trips::<Tool>(r#"{"name":"t","inputSchema":{"type":"object"},"more":[1]}"#);
    round_trips::<Prompt>(r#"{"name":"p","more":[1]}"#);
    round_trips::<Resource>(r#"{"uri":"a:b","name":"n","more":[1]}"#);
    round_trips::<ResourceTemplate>(r#"{"uriTemplate":"a:{b}","name":"n","more":[1]}"#);
    round_trips::<ContentBlock>(r#"{"type":"resource_link","uri":"a:b","name":"n","more":[1]}"#);
}

#[test]
fn unknown_blocks_pass_through_and_malformed_ones_are_errors() {
    round_trips::<ContentBlock>(r#"{"type":"video","data":"AA==","fps":25}"#);
    round_trips::<SamplingContent>(r#"{"type":"thought","text":"hm"}"#);
    for json in
        [r#"{"type":"text"}"#, r#"{"text":"x"}"#, r#"{"type":1,"text":"x"}"#, r#"["text","x"]"#]
    {
        assert!(serde_json::from_str::<ContentBlock>(json).is_err(), "{json}");
        assert!(serde_json::from_str::<SamplingContent>(json).is_err(), "{json}");
    }
}

#[test]
fn a_resource_has_a_text_or_a_blob() {
    for json in [r#"{"uri":"a:b"}"#, r#"{"uri":"a:b","text":"","blob":""}"#] {
        assert!(from_object::<ResourceContents>(json).is_err(), "{json}");
    }
    assert_eq!(ResourceContents::blob("a:b", [0, 255]).bytes().unwrap(), [0, 255]);
    assert_eq!(ResourceContents::text("a:b", "ä").bytes().unwrap(), "ä".as_bytes());
    round_trips::<ResourceContents>(r#"{"uri":"a:b","text":""}"#);
}

#[test]
fn one_block_of_sampling_is_written_without_an_array() {
    let one = r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#;
    let expected = json!({"role": "user", "content": {"type": "text", "text": "x"}});
    assert_eq!(rewritten::<SamplingMessage>(one).unwrap(), expected);
    round_trips::<SamplingMessage>(r#"{"role":"user","content":[]}"#);
    round_trips::<ToolChoice>(r#"{"mode":"none"}"#);
}

#[test]
fn an_unknown_elicitation_mode_is_an_error() {
    let error =
        serde_json::from_str::<ElicitParams>(r#"{"mode":"voice","message":"m"}"#).unwrap_err();
    assert!(error.to_string().contains("unknown elicitation mode \"voice\""), "{error}");
    assert!(serde_json::from_str::<ElicitParams>("[]").is_err());
}

#[test]
fn input_requests_of_unknown_methods_pass_through() {
    round_trips::<InputRequests>(
        r#"{"a":{"method":"vendor/ask","params":{"x":1.50}},"b":{"method":"roots/list"}}"#,
    );
    let error = from_object::<InputRequests>(r#"{"a":{"method":"elicitation/create"}}"#);
    assert!(error.is_err());
}

#[test]
fn an_answer_is_read_as_the_type_of_its_request() {
    let answer =
        InputResponse::from(ElicitResult::accept(json!({"n": 1}).as_object().unwrap().clone()));
    let result: ElicitResult = answer.decode().unwrap();
    assert_eq!(result.accepted::<Value>().unwrap(), Some(json!({"n": 1})));
    assert!(answer.decode::<ListRootsResult>().is_err());
    assert_eq!(ElicitResult::decline().accepted::<Value>().unwrap(), None);
}

#[test]
fn progress_and_sizes_may_be_written_as_floats() {
    let progress: ProgressParams =
        from_object(r#"{"progressToken":"t","progress":0.5,"total":1.0}"#).unwrap();
    assert_eq!((progress.progress, progress.total), (0.5, Some(1.0)));
    assert_eq!(
        serde_json::to_value(&progress).unwrap(),
        json!({"progressToken": "t", "progress": 0.5, "total": 1})
    );
    let resource: Resource = from_object(r#"{"uri":"a:b","name":"n","size":1e3}"#).unwrap();
    assert_eq!(resource.size, Some(1000));
}
