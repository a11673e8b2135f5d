//! The types of the protocol, of every revision.
//!
//! One set of types reads and writes all revisions. A member that a revision does not have is optional and is
//! omitted if it is not set, so the sender decides which members a revision gets. Reading is lenient: unknown members
//! of params are ignored, unknown members of results and of `_meta` are kept.
//!
//! The types are data. They never check that a message is valid in a revision.
//!
//! Derived serde code reads an Array as a struct. The protocol has no such messages, so params and results of a peer
//! are read with [`from_object`].

#[macro_use]
mod setters;

pub mod cancelled;
pub mod capabilities;
pub mod completion;
pub mod content;
pub mod discover;
pub mod elicitation;
pub mod elicitation_schema;
pub mod enum_schema;
pub mod error_codes;
pub mod implementation;
pub mod initialize;
pub mod input_required;
pub mod logging;
pub mod meta;
pub mod methods;
mod number;
mod object;
pub mod pagination;
pub mod progress;
pub mod prompt;
pub mod request;
pub mod resource;
pub mod roots;
pub mod sampling;
pub mod subscriptions;
pub mod tasks;
mod token;
pub mod tool;
pub mod version;

pub use cancelled::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ClientTasks, ElicitationCapability, Extensions, ListChangedCapability,
    ResourcesCapability, RootsCapability, SamplingCapability, ServerCapabilities, ServerTasks,
};
pub use completion::{
    CompleteArgument, CompleteContext, CompleteParams, CompleteResult, Completion, Reference,
};
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceContents,
    ResourceLink, Role, TextContent,
};
pub use discover::DiscoverResult;
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams, UrlElicitationRequired,
};
pub use elicitation_schema::{
    BooleanSchema, ElicitationSchema, NumberSchema, PrimitiveSchema, StringFormat, StringSchema,
};
pub use enum_schema::{EnumOption, EnumSchema};
pub use implementation::{Icon, Implementation, Theme};
pub use initialize::{InitializeParams, InitializeResult};
pub use input_required::{
    InputRequest, InputRequests, InputRequiredResult, InputResponse, InputResponses,
};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use meta::Meta;
pub use object::from_object;
pub use pagination::{CacheScope, Cacheable, Cursor, PaginatedParams};
pub use progress::ProgressParams;
pub use prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use request::{EmptyResult, NotificationParams, RequestParams, ResultType};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceTemplate, ResourceUpdatedParams, SubscribeParams, UnsubscribeParams,
};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode, ToolResultContent,
    ToolUseContent,
};
pub use subscriptions::{
    SubscriptionFilter, SubscriptionsAcknowledgedParams, SubscriptionsListenParams,
    SubscriptionsListenResult,
};
pub use token::{ProgressToken, RequestId};
pub use tool::{
    CallToolParams, CallToolResult, JsonObject, ListToolsResult, TaskSupport, Tool,
    ToolAnnotations, ToolExecution,
};
pub use version::Revision;
