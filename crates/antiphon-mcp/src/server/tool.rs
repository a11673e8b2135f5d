//! Tools: their descriptions, and the checks of their calls.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{BoxFuture, Outcome, RawJson};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::RequestContext;
use super::error::ToolError;
use super::schema;
use super::tasks::TaskStart;
use super::tool_handler::{Arguments, ToolHandler, dynamic_handler, finish, typed_handler};
use super::tool_result::IntoToolResult;
use crate::param_headers::ParamHeaders;
use crate::schema::Validator;
use crate::types::{Icon, JsonObject, TaskSupport, Tool, ToolAnnotations};

/// A tool of a server: its description and its handler.
///
/// ```
/// use antiphon_mcp::{RequestContext, ServerTool, Structured, ToolError};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Terms {
///     a: i64,
///     b: i64,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Sum {
///     sum: i64,
/// }
///
/// let add = ServerTool::new("add", |Terms { a, b }, _cx: RequestContext| async move {
///     let sum = a.checked_add(b).ok_or_else(|| ToolError::new("the sum is too large"))?;
///     Ok(Structured(Sum { sum }))
/// })
/// .description("Adds two numbers.")
/// .read_only();
/// assert!(add.tool().output_schema.is_some());
/// ```
#[derive(Clone)]
pub struct ServerTool {
    tool: Tool,
    handler: Arc<dyn ToolHandler>,
    /// Checks the arguments before the handler gets them, where the type of the handler does not.
    validator: Option<Arc<Validator>>,
    headers: Arc<ParamHeaders>,
    scopes: Vec<Cow<'static, str>>,
    task_start: TaskStart,
}

impl ServerTool {
    /// Creates a tool. The schemas of its arguments and of its result come from the types of the handler.
    ///
    /// The arguments are a struct, or `()`. If they are invalid, the handler is not called, and the model reads which
    /// argument is invalid.
    pub fn new<A, R, F>(
        name: impl Into<String>,
        handler: impl Fn(A, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoToolResult + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let input = schema::arguments::<A>();
        let must_validate = schema::restricts_more_than_types(&input);
        let mut tool = Tool::new(name, input);
        tool.output_schema = R::output_schema();
        let created = Self::from_parts(tool, typed_handler(handler));
        if must_validate { created.validated() } else { created }
    }

    /// Creates a tool from a description whose schemas are known only at run time. The arguments are checked against
    /// the input schema, and then passed as JSON.
    ///
    /// # Errors
    /// Fails if the input schema is not a valid JSON Schema of an Object.
    pub fn dynamic<R, F>(
        tool: Tool,
        handler: impl Fn(RawJson, RequestContext) -> F + Send + Sync + 'static,
    ) -> Result<Self, InvalidTool>
    where
        R: IntoToolResult + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let invalid = |reason: &str| InvalidTool { name: tool.name.clone(), reason: reason.into() };
        if tool.input_schema.get("type") != Some(&Value::from("object")) {
            return Err(invalid("its input schema must have the type `object`"));
        }
        let validator = Validator::new(&Value::Object(tool.input_schema.clone()));
        let validator = Arc::new(validator.map_err(|reason| invalid(&reason))?);
        let headers = ParamHeaders::of(&tool.input_schema);
        let headers = Arc::new(headers.map_err(|reason| invalid(&reason))?);
        let handler = dynamic_handler(handler);
        let task_start = TaskStart::AtOnce;
        let validator = Some(validator);
        Ok(Self { tool, handler, validator, headers, scopes: Vec::new(), task_start })
    }

    pub(super) fn from_parts(tool: Tool, handler: Arc<dyn ToolHandler>) -> Self {
        let headers = ParamHeaders::of(&tool.input_schema).unwrap_or_else(|reason| {
            tracing::error!(tool = tool.name, reason, "`x-mcp-header` is ignored");
            ParamHeaders::default()
        });
        let headers = Arc::new(headers);
        let task_start = TaskStart::AtOnce;
        Self { tool, handler, validator: None, headers, scopes: Vec::new(), task_start }
    }

    /// Checks the arguments against the schema before they are decoded.
    fn validated(mut self) -> Self {
        match Validator::new(&Value::Object(self.tool.input_schema.clone())) {
            Ok(validator) => self.validator = Some(Arc::new(validator)),
            Err(reason) => {
                tracing::error!(tool = self.tool.name, reason, "arguments are only decoded");
            }
        }
        self
    }

    /// The description that clients get.
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// The description, for members without a setter.
    #[cfg(feature = "macros")]
    pub(crate) fn description_mut(&mut self) -> &mut Tool {
        &mut self.tool
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// Sets what the tool does, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.tool.description = Some(description.into());
        self
    }

    /// Sets the hints for clients.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Hints that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hint(|hints| hints.read_only_hint = Some(true))
    }

    /// Hints whether the tool may destroy something.
    #[must_use]
    pub fn destructive(self, is_destructive: bool) -> Self {
        self.hint(|hints| hints.destructive_hint = Some(is_destructive))
    }

    /// Hints that a second call with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.hint(|hints| hints.idempotent_hint = Some(true))
    }

    /// Hints whether the tool reaches things outside of the server, such as the web.
    #[must_use]
    pub fn open_world(self, is_open: bool) -> Self {
        self.hint(|hints| hints.open_world_hint = Some(is_open))
    }

    fn hint(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.tool.annotations.get_or_insert_default());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.tool.icons.get_or_insert_default().push(icon);
        self
    }

    /// Adds a member to the metadata of the description.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Serialize) -> Self {
        self.tool.meta.set(key, value);
        self
    }

    /// Sets the input schema, for what the type of the arguments cannot express. The arguments are checked against
    /// it, and then decoded.
    #[must_use]
    pub fn input_schema(mut self, schema: JsonObject) -> Self {
        self.tool.input_schema = schema;
        let (scopes, task_start) = (self.scopes.clone(), self.task_start);
        Self { scopes, task_start, ..Self::from_parts(self.tool, self.handler) }.validated()
    }

    /// Sets the schema of the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: JsonObject) -> Self {
        self.tool.output_schema = Some(schema);
        self
    }

    /// Sets whether a call may become a task, whose result the client fetches later. The default is never.
    ///
    /// A legacy client asks for a task. For a client with the extension `io.modelcontextprotocol/tasks`, each call
    /// becomes a task at once, unless [`task_after`](Self::task_after) or [`task_on_demand`](Self::task_on_demand) is
    /// set. Other clients get the result as usual; if a task is required, they get an error.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use antiphon_mcp::types::TaskSupport;
    /// use antiphon_mcp::{RequestContext, ServerTool};
    ///
    /// let index = ServerTool::new("index", |(): (), cx: RequestContext| async move {
    ///     // The message becomes the status message of the task.
    ///     cx.progress(1.0, Some(2.0), Some("reading")).await;
    ///     "done"
    /// })
    /// .task(TaskSupport::Optional)
    /// .task_after(Duration::from_secs(2));
    /// # drop(index);
    /// ```
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.tool.execution.get_or_insert_default().task_support = Some(support);
        self
    }

    /// Lets a call of a modern client become a task only if it runs for longer than this. If the handler asks the client
    /// earlier, the question is the result of the call, as without tasks. Task support becomes optional unless it is set.
    #[must_use]
    pub fn task_after(self, time: Duration) -> Self {
        self.starting(TaskStart::After(time))
    }

    /// Lets a call of a modern client become a task only when its handler calls
    /// [`RequestContext::begin_task`](super::RequestContext::begin_task). If the handler asks the client earlier, the
    /// question is the result of the call. Task support becomes optional unless it is set.
    #[must_use]
    pub fn task_on_demand(self) -> Self {
        self.starting(TaskStart::OnDemand)
    }

    fn starting(mut self, start: TaskStart) -> Self {
        self.task_start = start;
        match self.task_support() {
            TaskSupport::Forbidden => self.task(TaskSupport::Optional),
            _ => self,
        }
    }

    pub(crate) fn task_support(&self) -> TaskSupport {
        self.tool.execution.as_ref().and_then(|it| it.task_support).unwrap_or_default()
    }

    pub(crate) fn task_start(&self) -> TaskStart {
        self.task_start
    }

    /// Requires a scope: a call whose token lacks it gets status 403. Callers without a token, as on stdio, are not
    /// checked; `auth::server::Authorization` requires tokens over HTTP. Needs the feature `auth`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Cow<'static, str>>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// The scopes that a caller needs.
    pub fn scopes(&self) -> &[Cow<'static, str>] {
        &self.scopes
    }

    pub(crate) fn param_headers(&self) -> &ParamHeaders {
        &self.headers
    }

    /// Checks the arguments and calls the handler.
    pub(crate) fn call(
        &self,
        arguments: Option<&str>,
        cx: RequestContext,
    ) -> BoxFuture<'static, Outcome> {
        let arguments = Arguments(arguments.unwrap_or("{}"));
        match self.check(arguments) {
            Ok(()) => self.handler.call(arguments, cx),
            Err(error) => Box::pin(std::future::ready(finish(Err(error), &cx))),
        }
    }

    fn check(&self, arguments: Arguments<'_>) -> Result<(), ToolError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let value: Value = arguments.decode()?;
        validator.check(&value).map_err(|fault| {
            // An error of the type says more than that of a schema with alternatives.
            self.handler.check(arguments).err().unwrap_or_else(|| {
                ToolError::new(match fault.path.as_str() {
                    "" => format!("invalid arguments: {}", fault.reason),
                    path => format!("invalid argument `{path}`: {}", fault.reason),
                })
            })
        })
    }
}

impl fmt::Debug for ServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTool").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// A description of a tool that a server cannot offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{name}` cannot be offered: {reason}")]
pub struct InvalidTool {
    name: String,
    reason: String,
}
