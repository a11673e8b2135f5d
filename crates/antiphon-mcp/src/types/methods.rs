//! The names of methods and notifications.

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $method:literal;)*) => {
        $(
            #[doc = concat!("`", $method, "`.")]
            $(#[$doc])*
            pub const $name: &str = $method;
        )*
    };
}

methods! {
    INITIALIZE = "initialize";
    INITIALIZED = "notifications/initialized";
    PING = "ping";
    DISCOVER = "server/discover";
    LIST_TOOLS = "tools/list";
    CALL_TOOL = "tools/call";
    TOOLS_CHANGED = "notifications/tools/list_changed";
    LIST_RESOURCES = "resources/list";
    LIST_RESOURCE_TEMPLATES = "resources/templates/list";
    READ_RESOURCE = "resources/read";
    SUBSCRIBE = "resources/subscribe";
    UNSUBSCRIBE = "resources/unsubscribe";
    RESOURCES_CHANGED = "notifications/resources/list_changed";
    RESOURCE_UPDATED = "notifications/resources/updated";
    LIST_PROMPTS = "prompts/list";
    GET_PROMPT = "prompts/get";
    PROMPTS_CHANGED = "notifications/prompts/list_changed";
    COMPLETE = "completion/complete";
    SET_LEVEL = "logging/setLevel";
    LOG_MESSAGE = "notifications/message";
    PROGRESS = "notifications/progress";
    CANCELLED = "notifications/cancelled";
    CREATE_MESSAGE = "sampling/createMessage";
    ELICIT = "elicitation/create";
    ELICITATION_COMPLETE = "notifications/elicitation/complete";
    LIST_ROOTS = "roots/list";
    ROOTS_CHANGED = "notifications/roots/list_changed";
    LISTEN = "subscriptions/listen";
    SUBSCRIPTIONS_ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
    GET_TASK = "tasks/get";
    /// Only in 2025-11-25.
    TASK_RESULT = "tasks/result";
    /// Only in 2025-11-25.
    LIST_TASKS = "tasks/list";
    /// Only in the extension `io.modelcontextprotocol/tasks`.
    UPDATE_TASK = "tasks/update";
    CANCEL_TASK = "tasks/cancel";
    /// Only in 2025-11-25.
    TASK_STATUS = "notifications/tasks/status";
    /// Only in the extension `io.modelcontextprotocol/tasks`.
    TASKS = "notifications/tasks";
}
