//! The types have every member that the schemas of the specification have.

use antiphon_mcp::types::error_codes::{
    MissingRequiredClientCapability, UnsupportedProtocolVersion,
};
use antiphon_mcp::types::tasks::{TaskMetadata, TaskParams, legacy};
use antiphon_mcp::types::*;
use serde_json::Value;

use super::samples::Definitions;
use super::{examples, round_trips};

/// Definitions that no message has: only others build on them.
const ABSTRACT: &[&str] = &[
    "BaseMetadata",
    "CacheableResult",
    "Error",
    "Icons",
    "InputResponse",
    "InputResponseRequestParams",
    "JSONArray",
    "JSONObject",
    "JSONValue",
    "MetaObject",
    "Notification",
    "NotificationMetaObject",
    "PaginatedRequest",
    "PaginatedResult",
    "RelatedTaskMetadata",
    "Request",
    "RequestMetaObject",
    "ResourceRequestParams",
    "Result",
    "ResultMetaObject",
    "SubscriptionsListenResultMetaObject",
    "TaskAugmentedRequestParams",
    // The resource of an embedded one without its content.
    "ResourceContents",
];

/// Definitions that are one of several others.
const UNIONS: &[&str] = &[
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "ElicitRequestParams",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
];

#[test]
fn each_definition_of_2025_11_25_has_a_type() {
    check_all("2025-11-25");
}

#[test]
fn each_definition_of_2026_07_28_has_a_type() {
    check_all("2026-07-28");
}

fn check_all(revision: &str) {
    let definitions = Definitions::of(revision);
    for name in definitions.names() {
        let is_envelope = name.starts_with("JSONRPC") || name.ends_with("ResultResponse");
        if is_envelope || ABSTRACT.contains(&name) || UNIONS.contains(&name) {
            continue;
        }
        for sample in definitions.samples(name) {
            println!("{revision} {name} {sample}");
            check(name, &sample);
        }
    }
}

fn check(name: &str, sample: &Value) {
    let text = sample.to_string();
    match name {
        "Annotations" => round_trips::<Annotations>(&text),
        "CancelTaskResult" | "GetTaskResult" => round_trips::<legacy::TaskResult>(&text),
        "ContentBlock" => round_trips::<ContentBlock>(&text),
        "CreateTaskResult" => round_trips::<legacy::CreateTaskResult>(&text),
        "Cursor" | "ProgressToken" | "RequestId" | "LoggingLevel" | "Role" => scalar(name, sample),
        "ResultType" | "TaskStatus" => scalar(name, sample),
        "EmptyResult" => round_trips::<EmptyResult>(&text),
        "Icon" => round_trips::<Icon>(&text),
        "Implementation" => round_trips::<Implementation>(&text),
        "InputRequest" => round_trips::<InputRequest>(&text),
        "InitializeRequestParams" => round_trips::<InitializeParams>(&text),
        "InitializeResult" => round_trips::<InitializeResult>(&text),
        // The result of the request that the task has run.
        "GetTaskPayloadResult" => {}
        "ListTasksResult" => round_trips::<legacy::ListTasksResult>(&text),
        "ModelHint" => round_trips::<ModelHint>(&text),
        "NotificationParams" => round_trips::<NotificationParams>(&text),
        "RequestParams" => round_trips::<RequestParams>(&text),
        "PrimitiveSchemaDefinition" => round_trips::<PrimitiveSchema>(&text),
        "Prompt" => round_trips::<Prompt>(&text),
        "PromptArgument" => round_trips::<PromptArgument>(&text),
        "PromptMessage" => round_trips::<PromptMessage>(&text),
        "PromptReference" | "ResourceTemplateReference" => round_trips::<Reference>(&text),
        "ReadResourceRequestParams" => round_trips::<ReadResourceParams>(&text),
        "ResourceTemplate" => round_trips::<ResourceTemplate>(&text),
        "SamplingMessageContentBlock" => round_trips::<SamplingContent>(&text),
        "SetLevelRequestParams" => round_trips::<SetLevelParams>(&text),
        "SubscribeRequestParams" => round_trips::<SubscribeParams>(&text),
        "SubscriptionFilter" => round_trips::<SubscriptionFilter>(&text),
        "SubscriptionsAcknowledgedNotificationParams" => {
            round_trips::<SubscriptionsAcknowledgedParams>(&text);
        }
        "SubscriptionsListenRequestParams" => round_trips::<SubscriptionsListenParams>(&text),
        "Task" => round_trips::<legacy::Task>(&text),
        "TaskMetadata" => round_trips::<TaskMetadata>(&text),
        "TaskStatusNotificationParams" => round_trips::<legacy::TaskResult>(&text),
        "ToolAnnotations" => round_trips::<ToolAnnotations>(&text),
        "ToolChoice" => round_trips::<ToolChoice>(&text),
        "ToolExecution" => round_trips::<ToolExecution>(&text),
        "URLElicitationRequiredError" => {
            round_trips::<UrlElicitationRequired>(&sample["error"]["data"].to_string());
        }
        "UnsubscribeRequestParams" => round_trips::<UnsubscribeParams>(&text),
        "MissingRequiredClientCapabilityError" => {
            round_trips::<MissingRequiredClientCapability>(&data(sample));
        }
        "UnsupportedProtocolVersionError" => {
            round_trips::<UnsupportedProtocolVersion>(&data(sample));
        }
        error if error.ends_with("Error") => {}
        "CancelTaskRequest" | "GetTaskPayloadRequest" | "GetTaskRequest" => {
            round_trips::<TaskParams>(&sample["params"].to_string());
        }
        // Examples exist for all others.
        _ => examples::check(name, sample),
    }
}

fn data(error: &Value) -> String {
    error["error"]["data"].to_string()
}

/// Checks a type that is not an Object.
fn scalar(name: &str, sample: &Value) {
    let text = sample.to_string();
    let again = match name {
        "ProgressToken" => super::reread::<ProgressToken>(&text),
        "RequestId" => super::reread::<RequestId>(&text),
        "LoggingLevel" => super::reread::<LoggingLevel>(&text),
        "Role" => super::reread::<Role>(&text),
        "ResultType" => super::reread::<ResultType>(&text),
        "TaskStatus" => super::reread::<tasks::TaskStatus>(&text),
        _ => super::reread::<String>(&text),
    };
    assert_eq!(again, *sample, "{name}");
}
