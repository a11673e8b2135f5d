//! From a method's name to the function that serves it.
//!
//! Methods are closures; their params and results are the user's types, and no other generic is seen
//! outside. Everything is erased when it is registered, so a `Router` is one plain type.

mod name;
#[cfg(feature = "openrpc")]
mod openrpc;
mod serve_subscription;
mod subscriptions;
#[cfg(feature = "validate")]
mod validate;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome, Params, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BoxFuture;
use crate::call::Invocation;
use crate::context::Context;
use crate::handler::Handler;
use crate::log_excerpt::log_excerpt;
use crate::params;
use crate::same_type::same_type;
use name::{Name, Names};
use subscriptions::Offered;

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
    methods: HashMap<Name, Entry, Names>,
    fallback: Option<Fallback>,
    #[cfg(feature = "openrpc")]
    pub(crate) descriptions: Vec<crate::openrpc::Described>,
}

type Method = Arc<dyn Fn(Option<Params>, Context) -> BoxFuture<'static, Outcome> + Send + Sync>;
/// What serves a name.
#[derive(Clone)]
enum Entry {
    Method(Method),
    /// Begins a subscription: of the kind that its first param says, where there are kinds.
    Subscribe(Vec<Offered>),
    /// Ends one.
    Unsubscribe,
}

/// What looks at params before a method is entered.
#[cfg(feature = "validate")]
pub(crate) type Look = Arc<dyn Fn(Option<&Params>) -> Result<(), ErrorObject> + Send + Sync>;

type Fallback = Arc<dyn Fn(Invocation, Context) -> BoxFuture<'static, Outcome> + Send + Sync>;

impl Router {
    /// A router without methods.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a method: `|params, cx| async { Ok(result) }`.
    ///
    /// A struct takes params by position and by name; a tuple or `Vec` by position; `()` takes none;
    /// [`RawJson`] takes them as they were written. A field that may be left out by position needs
    /// `#[serde(default)]`, an `Option` too. A result that is `RawJson` goes out as it is.
    ///
    /// An error is an [`ErrorObject`]; `?` makes one of whatever has a `From` for it, such as the
    /// [`CallError`](crate::CallError) of a call made from here. A plain function serves as well:
    ///
    /// ```
    /// # use antiphon::{Context, ErrorObject, Router};
    /// async fn divide((a, b): (i64, i64), _cx: Context) -> Result<i64, ErrorObject> {
    ///     a.checked_div(b).ok_or_else(|| ErrorObject::new(1, "division by zero"))
    /// }
    /// let router = Router::new().method("divide", divide);
    /// ```
    ///
    /// # Panics
    /// When the name is taken: two functions cannot serve one method.
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
            Entry::Method(Arc::new(move |params, cx| match params::read(params) {
                Err(error) => Box::pin(std::future::ready(Err(error))),
                Ok(params) => {
                    let reply = function(params, cx);
                    Box::pin(async move { encode(reply.await?) })
                }
            })),
        )
    }

    /// Serves a notification: `|params, cx| async { }`. Called as a method, it answers null.
    ///
    /// # Panics
    /// When the name is taken.
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

    /// Serves whatever has no method of its own, notifications included.
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

    /// Takes in the methods of another router, and its fallback where this one has none.
    ///
    /// # Panics
    /// When both have a method of one name.
    #[must_use]
    pub fn merge(self, other: Router) -> Self {
        self.nest("", other)
    }

    /// Takes in the methods of another router under a prefix: `"db."` makes `get` into `db.get`.
    /// A fallback keeps seeing whole names.
    ///
    /// # Panics
    /// When a name is taken.
    #[must_use]
    pub fn nest(mut self, prefix: &str, other: Router) -> Self {
        for (name, entry) in other.methods {
            match entry {
                Entry::Subscribe(topics) => {
                    topics.iter().for_each(|topic| self.add_topic(topic.prefixed(prefix)));
                }
                Entry::Unsubscribe => {}
                method @ Entry::Method(_) => {
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

    /// The names of all methods, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(|name| &*name.0)
    }

    fn insert(mut self, name: &str, entry: Entry) -> Self {
        let taken = self.methods.insert(Name(name.into()), entry).is_some();
        assert!(!taken, "method `{name}` is registered twice");
        self
    }

    /// Looks at a method's params before it is entered. Of a subscription they are those of its kind.
    #[cfg(feature = "validate")]
    pub(crate) fn guard(&mut self, name: &str, kind: Option<&str>, look: Look) {
        match self.methods.get_mut(name.as_bytes()) {
            Some(Entry::Method(method)) => {
                let inner = method.clone();
                *method = Arc::new(move |params, cx| match look(params.as_ref()) {
                    Ok(()) => inner(params, cx),
                    Err(error) => Box::pin(std::future::ready(Err(error))),
                });
            }
            Some(Entry::Subscribe(topics)) => {
                let of_kind = |topic: &&mut Offered| topic.kind() == kind;
                topics.iter_mut().filter(of_kind).for_each(|topic| topic.guard(look.clone()));
            }
            Some(Entry::Unsubscribe) | None => {}
        }
    }

    fn dispatch(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        match (self.methods.get(call.method.as_bytes()), &self.fallback) {
            (Some(Entry::Method(method)), _) => method(call.params, cx),
            (Some(Entry::Subscribe(topics)), _) => {
                subscriptions::subscribe(topics, call.params, cx)
            }
            (Some(Entry::Unsubscribe), _) => Box::pin(subscriptions::unsubscribe(call.params, cx)),
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
            // Nobody is told (section 4.1), so the log is.
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

/// A result as it goes out.
pub(crate) fn encode<R: Serialize + 'static>(result: R) -> Outcome {
    same_type::<R, RawJson>(result).or_else(|result| {
        RawJson::encode(&result).map_err(|error| {
            tracing::error!(%error, "a result does not serialize");
            ErrorObject::internal_error()
        })
    })
}
