//! The handlers of tools: how the arguments of a call become values, and how a value becomes its result.

use std::marker::PhantomData;
use std::sync::Arc;

use antiphon::{BoxFuture, ErrorObject, Outcome, RawJson};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::RequestContext;
use super::error::ToolError;
use super::request::fault;
use super::tool_result::{IntoToolResult, ToolOutput};

/// Serves the calls of a tool.
pub(crate) trait ToolHandler: Send + Sync {
    /// Checks that the arguments have the type of the handler, if it has one.
    fn check(&self, _: Arguments<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    fn call(&self, arguments: Arguments<'_>, cx: RequestContext) -> BoxFuture<'static, Outcome>;
}

/// The arguments of a call, as the text of an Object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(pub(crate) &'a str);

impl Arguments<'_> {
    /// Decodes the arguments. The error names the place of the fault.
    pub(super) fn decode<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        if !self.0.starts_with('{') {
            return Err(ToolError::new("invalid arguments: they must be an Object"));
        }
        serde_json::from_str(self.0).map_err(|error| {
            let (path, reason) = fault::<T>(self.0, &error);
            ToolError::new(match path.as_str() {
                "" => format!("invalid arguments: {reason}"),
                path => format!("invalid argument `{path}`: {reason}"),
            })
        })
    }
}

/// Creates the handler of a tool whose arguments are a type.
pub(super) fn typed_handler<A, R, F>(
    handler: impl Fn(A, RequestContext) -> F + Send + Sync + 'static,
) -> Arc<dyn ToolHandler>
where
    A: DeserializeOwned + 'static,
    R: IntoToolResult + 'static,
    F: Future<Output = R> + Send + 'static,
{
    Arc::new(Typed { handler, types: PhantomData::<fn(A) -> R> })
}

/// A handler whose arguments are a type.
struct Typed<H, T> {
    handler: H,
    types: PhantomData<T>,
}

impl<H, A, R, F> ToolHandler for Typed<H, fn(A) -> R>
where
    H: Fn(A, RequestContext) -> F + Send + Sync,
    A: DeserializeOwned,
    R: IntoToolResult + 'static,
    F: Future<Output = R> + Send + 'static,
{
    fn check(&self, arguments: Arguments<'_>) -> Result<(), ToolError> {
        arguments.decode::<NoNull<A>>().map(drop)
    }

    fn call(&self, arguments: Arguments<'_>, cx: RequestContext) -> BoxFuture<'static, Outcome> {
        let decoded = match arguments.decode::<NoNull<A>>() {
            Ok(NoNull(decoded)) => decoded,
            Err(error) => return Box::pin(std::future::ready(finish(Err(error), &cx))),
        };
        let running = (self.handler)(decoded, cx.clone());
        Box::pin(async move { finish(running.await.into_tool_result(), &cx) })
    }
}

/// Arguments of a type. `()` takes every Object.
struct NoNull<A>(A);

impl<'de, A: DeserializeOwned> serde::Deserialize<'de> for NoNull<A> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::IgnoredAny;
        // The only value without a size that is read from null is the unit.
        if std::mem::size_of::<A>() == 0
            && let Ok(unit) = serde_json::from_value::<A>(Value::Null)
        {
            IgnoredAny::deserialize(deserializer)?;
            return Ok(Self(unit));
        }
        A::deserialize(deserializer).map(Self)
    }
}

/// Creates the handler of a tool whose arguments are JSON.
pub(super) fn dynamic_handler<R, F>(
    handler: impl Fn(RawJson, RequestContext) -> F + Send + Sync + 'static,
) -> Arc<dyn ToolHandler>
where
    R: IntoToolResult + 'static,
    F: Future<Output = R> + Send + 'static,
{
    Arc::new(Dynamic { handler, types: PhantomData::<fn() -> R> })
}

/// A handler whose arguments are JSON.
struct Dynamic<H, T> {
    handler: H,
    types: PhantomData<T>,
}

impl<H, R, F> ToolHandler for Dynamic<H, fn() -> R>
where
    H: Fn(RawJson, RequestContext) -> F + Send + Sync,
    R: IntoToolResult + 'static,
    F: Future<Output = R> + Send + 'static,
{
    fn call(&self, arguments: Arguments<'_>, cx: RequestContext) -> BoxFuture<'static, Outcome> {
        let arguments = match RawJson::parse(arguments.0.to_owned()) {
            Ok(arguments) => arguments,
            Err(error) => {
                let error = ErrorObject::internal(error);
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        let running = (self.handler)(arguments, cx.clone());
        Box::pin(async move { finish(running.await.into_tool_result(), &cx) })
    }
}

/// Encodes what a handler has returned.
pub(super) fn finish(result: Result<ToolOutput, ToolError>, cx: &RequestContext) -> Outcome {
    let output = match result {
        Ok(output) => output,
        Err(error) => error.into_result()?.into(),
    };
    output.encode(cx)
}
