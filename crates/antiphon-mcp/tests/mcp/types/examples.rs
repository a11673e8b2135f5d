//! Every example of the specification is read and written back unchanged.

use std::fs;
use std::path::Path;

use antiphon_mcp::types::error_codes::{
    MissingRequiredClientCapability, UnsupportedProtocolVersion,
};
use antiphon_mcp::types::*;
use serde_json::Value;

use super::round_trips;

#[test]
fn every_example_round_trips() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mcp/examples");
    let mut count = 0;
    for directory in fs::read_dir(examples).unwrap() {
        let directory = directory.unwrap();
        let name = directory.file_name().into_string().unwrap();
        for file in fs::read_dir(directory.path()).unwrap() {
            let path = file.unwrap().path();
            let example: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            println!("{}", path.display());
            check(&name, &example);
            count += 1;
        }
    }
    assert!(count >= 128, "only {count} examples");
}

/// Checks an example by the name of its type.
pub(crate) fn check(name: &str, example: &Value) {
    if name.ends_with("ResultResponse") {
        return check(name.trim_end_matches("Response"), &example["result"]);
    }
    if let (Some(method), None) = (example["method"].as_str(), name.strip_prefix("Input")) {
        return check_message(method, example);
    }
    let text = example.to_string();
    match name {
        "AudioContent" | "ImageContent" | "TextContent" | "EmbeddedResource" | "ResourceLink" => {
            round_trips::<ContentBlock>(&text);
        }
        "ToolUseContent" | "ToolResultContent" => round_trips::<SamplingContent>(&text),
        "BlobResourceContents" | "TextResourceContents" => round_trips::<ResourceContents>(&text),
        schema if schema.ends_with("Schema") => round_trips::<PrimitiveSchema>(&text),
        "CallToolRequestParams" => round_trips::<CallToolParams>(&text),
        "CallToolResult" => round_trips::<CallToolResult>(&text),
        "CancelledNotificationParams" => round_trips::<CancelledParams>(&text),
        "ClientCapabilities" => round_trips::<ClientCapabilities>(&text),
        "CompleteRequestParams" => round_trips::<CompleteParams>(&text),
        "CompleteResult" => round_trips::<CompleteResult>(&text),
        "CreateMessageRequestParams" => round_trips::<CreateMessageParams>(&text),
        "CreateMessageResult" => round_trips::<CreateMessageResult>(&text),
        "DiscoverResult" => round_trips::<DiscoverResult>(&text),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => round_trips::<ElicitParams>(&text),
        "ElicitResult" => round_trips::<ElicitResult>(&text),
        "GetPromptRequestParams" => round_trips::<GetPromptParams>(&text),
        "GetPromptResult" => round_trips::<GetPromptResult>(&text),
        "InputRequests" => round_trips::<InputRequests>(&text),
        "InputRequiredResult" => round_trips::<InputRequiredResult>(&text),
        "InputResponses" => round_trips::<InputResponses>(&text),
        "ListPromptsResult" => round_trips::<ListPromptsResult>(&text),
        "ListResourceTemplatesResult" => round_trips::<ListResourceTemplatesResult>(&text),
        "ListResourcesResult" => round_trips::<ListResourcesResult>(&text),
        "ListRootsResult" => round_trips::<ListRootsResult>(&text),
        "ListToolsResult" => round_trips::<ListToolsResult>(&text),
        "LoggingMessageNotificationParams" => round_trips::<LoggingMessageParams>(&text),
        "ModelPreferences" => round_trips::<ModelPreferences>(&text),
        "PaginatedRequestParams" => round_trips::<PaginatedParams>(&text),
        "ProgressNotificationParams" => round_trips::<ProgressParams>(&text),
        "ReadResourceResult" => round_trips::<ReadResourceResult>(&text),
        "Resource" => round_trips::<Resource>(&text),
        "ResourceUpdatedNotificationParams" => round_trips::<ResourceUpdatedParams>(&text),
        "Root" => round_trips::<Root>(&text),
        "SamplingMessage" => round_trips::<SamplingMessage>(&text),
        "ServerCapabilities" => round_trips::<ServerCapabilities>(&text),
        "SubscriptionsListenResult" => round_trips::<SubscriptionsListenResult>(&text),
        "Tool" => round_trips::<Tool>(&text),
        error if error.ends_with("Error") => check_error(error, example),
        other => panic!("no type for {other}"),
    }
}

/// Checks the params of a request or notification by its method.
fn check_message(method: &str, message: &Value) {
    let text = message.get("params").map_or("{}".to_owned(), Value::to_string);
    // An input request is a request without an envelope.
    let mut input = message.clone();
    input.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "jsonrpc");
    let input = input.to_string();
    match method {
        methods::INITIALIZE => round_trips::<InitializeParams>(&text),
        methods::PING => round_trips::<RequestParams>(&text),
        methods::SET_LEVEL => round_trips::<SetLevelParams>(&text),
        methods::SUBSCRIBE => round_trips::<SubscribeParams>(&text),
        methods::UNSUBSCRIBE => round_trips::<UnsubscribeParams>(&text),
        methods::ELICITATION_COMPLETE => round_trips::<ElicitationCompleteParams>(&text),
        methods::CALL_TOOL => round_trips::<CallToolParams>(&text),
        methods::CANCELLED => round_trips::<CancelledParams>(&text),
        methods::COMPLETE => round_trips::<CompleteParams>(&text),
        methods::CREATE_MESSAGE => {
            round_trips::<CreateMessageParams>(&text);
            round_trips::<InputRequest>(&input);
        }
        methods::DISCOVER => round_trips::<RequestParams>(&text),
        methods::ELICIT => round_trips::<InputRequest>(&input),
        methods::GET_PROMPT => round_trips::<GetPromptParams>(&text),
        methods::LIST_ROOTS => round_trips::<InputRequest>(&input),
        methods::LIST_PROMPTS
        | methods::LIST_RESOURCES
        | methods::LIST_RESOURCE_TEMPLATES
        | methods::LIST_TASKS
        | methods::LIST_TOOLS => round_trips::<PaginatedParams>(&text),
        methods::LISTEN => round_trips::<SubscriptionsListenParams>(&text),
        methods::LOG_MESSAGE => round_trips::<LoggingMessageParams>(&text),
        methods::PROGRESS => round_trips::<ProgressParams>(&text),
        methods::READ_RESOURCE => round_trips::<ReadResourceParams>(&text),
        methods::RESOURCE_UPDATED => round_trips::<ResourceUpdatedParams>(&text),
        methods::SUBSCRIPTIONS_ACKNOWLEDGED => {
            round_trips::<SubscriptionsAcknowledgedParams>(&text);
        }
        methods::TASK_STATUS => round_trips::<tasks::legacy::TaskResult>(&text),
        methods::INITIALIZED
        | methods::ROOTS_CHANGED
        | methods::PROMPTS_CHANGED
        | methods::RESOURCES_CHANGED
        | methods::TOOLS_CHANGED => {
            round_trips::<NotificationParams>(&text);
        }
        other => panic!("no type for {other}"),
    }
}

/// Checks the code and the data of an error.
fn check_error(name: &str, example: &Value) {
    let error = example.get("error").unwrap_or(example);
    let data = error["data"].to_string();
    let code = match name {
        "ParseError" => -32700,
        "MethodNotFoundError" => -32601,
        "InvalidParamsError" => -32602,
        "InternalError" => -32603,
        "HeaderMismatchError" => error_codes::HEADER_MISMATCH,
        "MissingRequiredClientCapabilityError" => {
            round_trips::<MissingRequiredClientCapability>(&data);
            error_codes::MISSING_REQUIRED_CLIENT_CAPABILITY
        }
        "UnsupportedProtocolVersionError" => {
            round_trips::<UnsupportedProtocolVersion>(&data);
            error_codes::UNSUPPORTED_PROTOCOL_VERSION
        }
        other => panic!("no code for {other}"),
    };
    assert_eq!(error["code"], code);
}
