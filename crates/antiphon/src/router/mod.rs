//! The router: finds the function that serves a method.
//!
//! Methods are closures, and their params and results are the user's types. The types are erased at
//! registration, so `Router` has no type parameters.

mod blocking;
mod method_name;
#[cfg(feature = "openrpc")]
mod openrpc;
mod serve_subscription;
mod subscriptions;
#[cfg(feature = "validate")]
mod validate;
mod with_state;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome, Params, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;
use crate::log_excerpt::log_excerpt;
use crate::params;
use crate::same_type::same_type;
use crate::service::Handler;
use method_name::{BuildNameHasher, MethodName};
use subscriptions::ServedTopic;
pub use with_state::StatefulRouter;

/// The methods of a service.
///
/// ```
/// use antiphon::{Context, ErrorObject, Router};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Subtract { minuend: i64, subtrahend: i64 }   // by position and by name, both
///
/// let math = Router::new().method("subtract", |p: Subtract, _cx: Context| async move {
///     p.minuend.checked_sub(p.subtrahend).ok_or(ErrorObject::new(1, "overflow"))
/// });
/// let router = Router::new()
///     .nest("math.", math)
///     .notification("update", |values: Vec<i64>, _cx: Context| async move { drop(values) });
/// ```
#[derive(Clone, Default)]
pub struct Router {
    methods: HashMap<MethodName, MethodRoute, BuildNameHasher>,
    fallback: Option<FallbackFn>,
    #[cfg(feature = "openrpc")]
    pub(crate) descriptions: Vec<crate::openrpc::Described>,
}

type MethodFn = Arc<dyn Fn(Option<Params>, Context) -> BoxFuture<'static, Outcome> + Send + Sync>;
/// The target of a method name.
#[derive(Clone)]
enum MethodRoute {
    Method(MethodFn),
    /// Subscribes. If there are several topics, the first param names the kind.
    Subscribe(Vec<ServedTopic>),
    /// Unsubscribes.
    Unsubscribe,
}

/// A check of the params before the method runs.
#[cfg(feature = "validate")]
pub(crate) type ParamsGuard = Arc<dyn Fn(Option<&Params>) -> Result<(), ErrorObject> + Send + Sync>;

type FallbackFn = Arc<dyn Fn(Invocation, Context) -> BoxFuture<'static, Outcome> + Send + Sync>;

impl Router {
    /// A router without methods.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a method: `|params, cx| async { Ok(result) }`.
    ///
    /// The type of the params decides what the method accepts:
    /// - A struct accepts params by position and by name. If callers may omit trailing positional params,
    ///   those fields need `#[serde(default)]`, even `Option` fields.
    /// - A tuple or a `Vec` accepts params by position. One param is a tuple of one: `|(n,): (i64,), cx|`.
    /// - `()` accepts no params.
    /// - [`RawJson`] accepts all params unparsed. It is always an Array or an Object: `[]` if the params are
    ///   absent. `Option<RawJson>` is `None` if they are absent.
    ///
    /// The result is serialized. A `RawJson` result is sent unchanged.
    ///
    /// **Do not block** in the function. It runs on the thread of its connection until it first awaits.
    /// Meanwhile no other call of the connection makes progress. A function that blocks, or that computes
    /// for long, belongs in [`blocking`](Self::blocking).
    ///
    /// The error type is [`ErrorObject`]. `?` converts every error that `ErrorObject` implements `From`
    /// for, such as an enum that derives `RpcError`, or the [`CallError`](crate::CallError) of a call to
    /// another service. For any other error, use [`ErrorObject::internal`]. It logs the error, and the
    /// caller gets -32603. An `async fn` works like a closure:
    ///
    /// ```
    /// # use antiphon::{Context, ErrorObject, Router};
    /// async fn divide((a, b): (i64, i64), _cx: Context) -> Result<i64, ErrorObject> {
    ///     a.checked_div(b).ok_or_else(|| ErrorObject::new(1, "division by zero"))
    /// }
    ///
    /// async fn version(_: (), _cx: Context) -> Result<String, ErrorObject> {
    ///     std::env::var("VERSION").map_err(ErrorObject::internal)
    /// }
    ///
    /// let router = Router::new().method("divide", divide).method("version", version);
    /// ```
    ///
    /// # Cancel safety
    /// The future can be dropped at any await point, for example when the caller goes away; see
    /// [`Handler`](crate::Handler). Use [`Context::spawn`] or `tokio::spawn` for work that must finish.
    ///
    /// # Panics
    /// Panics if the method is already registered.
    #[must_use]
    pub fn method<P, R, F, Fut>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ErrorObject>> + Send + 'static,
    {
        self.insert(
            name,
            MethodRoute::Method(Arc::new(move |params, cx| match params::read(params) {
                Err(error) => Box::pin(std::future::ready(Err(error))),
                Ok(params) => {
                    let reply = function(params, cx);
                    Box::pin(async move { encode(reply.await?) })
                }
            })),
        )
    }

    /// Serves a notification: `|params, cx| async { }`. A request for the same method gets the result
    /// `null`.
    ///
    /// A notification has no response, so invalid params are only logged, at debug level.
    ///
    /// # Panics
    /// Panics if the method is already registered.
    #[must_use]
    pub fn notification<P, F, Fut>(self, name: &str, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.method(name, move |params: P, cx| {
            let done = function(params, cx);
            async move {
                done.await;
                Ok(())
            }
        })
    }

    /// Serves all methods that are not registered, notifications included.
    ///
    /// A proxy is a fallback that forwards:
    ///
    /// ```
    /// use antiphon::{Client, Context, Invocation, Router};
    ///
    /// fn proxy(upstream: Client) -> Router {
    ///     Router::new().fallback(move |call: Invocation, cx: Context| {
    ///         let upstream = upstream.clone();
    ///         async move { Ok(upstream.forward(call, &cx).await?) }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn fallback<R, F, Fut>(mut self, function: F) -> Self
    where
        R: Serialize + 'static,
        F: Fn(Invocation, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ErrorObject>> + Send + 'static,
    {
        self.fallback = Some(Arc::new(move |call, cx| {
            let reply = function(call, cx);
            Box::pin(async move { encode(reply.await?) })
        }));
        self
    }

    /// Adds the methods of another router, and its fallback if this router has none.
    ///
    /// # Panics
    /// Panics if a method is registered in both.
    #[must_use]
    pub fn merge(self, other: Router) -> Self {
        self.nest("", other)
    }

    /// Adds the methods of another router under a prefix: with `"db."`, `get` becomes `db.get`. A
    /// fallback receives the full method name.
    ///
    /// # Panics
    /// Panics if a method is already registered.
    #[must_use]
    pub fn nest(mut self, prefix: &str, other: Router) -> Self {
        for (name, entry) in other.methods {
            match entry {
                MethodRoute::Subscribe(topics) => {
                    topics.iter().for_each(|topic| self.add_topic(topic.prefixed(prefix)));
                }
                MethodRoute::Unsubscribe => {}
                method @ MethodRoute::Method(_) => {
                    self = self.insert(&format!("{prefix}{}", name.0), method);
                }
            }
        }
        #[cfg(feature = "openrpc")]
        {
            self = self.describe_all(prefix, other.descriptions);
        }
        self.fallback = self.fallback.or(other.fallback);
        self
    }

    /// The names of all methods, in arbitrary order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(|name| &*name.0)
    }

    fn insert(mut self, name: &str, route: MethodRoute) -> Self {
        let taken = self.methods.insert(MethodName(name.into()), route).is_some();
        assert!(!taken, "method `{name}` is registered twice");
        self
    }

    /// Checks the params of a method before it runs; for a subscription, only those of this kind.
    #[cfg(feature = "validate")]
    pub(crate) fn guard(&mut self, name: &str, kind: Option<&str>, check: ParamsGuard) {
        match self.methods.get_mut(name.as_bytes()) {
            Some(MethodRoute::Method(method)) => {
                let inner = method.clone();
                *method = Arc::new(move |params, cx| match check(params.as_ref()) {
                    Ok(()) => inner(params, cx),
                    Err(error) => Box::pin(std::future::ready(Err(error))),
                });
            }
            Some(MethodRoute::Subscribe(topics)) => {
                let of_kind = |topic: &&mut ServedTopic| topic.kind() == kind;
                topics.iter_mut().filter(of_kind).for_each(|topic| topic.guard(check.clone()));
            }
            Some(MethodRoute::Unsubscribe) | None => {}
        }
    }

    fn dispatch(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        match (self.methods.get(call.method.as_bytes()), &self.fallback) {
            (Some(MethodRoute::Method(method)), _) => method(call.params, cx),
            (Some(MethodRoute::Subscribe(topics)), _) => {
                subscriptions::subscribe(topics, call.params, cx)
            }
            (Some(MethodRoute::Unsubscribe), _) => {
                Box::pin(subscriptions::unsubscribe(call.params, cx))
            }
            (None, Some(fallback)) => fallback(call, cx),
            (None, None) => Box::pin(std::future::ready(Err(ErrorObject::method_not_found()))),
        }
    }
}

impl Handler for Router {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.dispatch(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let name = notification.method.clone();
        let done = self.dispatch(notification, cx);
        Box::pin(async move {
            // A notification gets no response (section 4.1), so the error goes to the log.
            if let Err(error) = done.await {
                tracing::debug!(method = log_excerpt(name.as_str()), %error, "notification failed");
            }
        })
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("methods", &self.names().collect::<Vec<_>>())
            .field("fallback", &self.fallback.is_some())
            .finish()
    }
}

/// Serializes a result.
pub(crate) fn encode<R: Serialize + 'static>(result: R) -> Outcome {
    same_type::<R, RawJson>(result).or_else(|result| {
        RawJson::encode(&result).map_err(|error| {
            let result = std::any::type_name::<R>();
            tracing::error!(result, %error, "cannot serialize the result of a method");
            ErrorObject::internal_error()
        })
    })
}
