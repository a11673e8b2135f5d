//! A filter of methods by name.

use std::sync::Arc;

use antiphon_core::ErrorObject;

use super::pattern::Patterns;
use super::policy::Policy;
use crate::service::{CallService, LayerCall, ReadyCall};

/// Rejects methods by name, as if they did not exist.
///
/// A pattern is the name of a method, or a prefix followed by `*`. If no pattern is allowed explicitly,
/// every method is allowed. A denied method is rejected even if it is also allowed.
///
/// `rpc.discover` describes the router, which does not know of its layers, so it still lists the methods
/// that are rejected here. Deny it too if the names are secret.
///
/// ```
/// use antiphon::layer::Filter;
/// use antiphon::{Handler, Router};
///
/// # let router = Router::new();
/// let service = router.layer(Filter::new().allow(["eth_*", "net_version"]).deny(["eth_sign"]));
/// ```
#[derive(Clone, Debug)]
pub struct Filter(Arc<FilterRules>);

#[derive(Clone, Debug)]
struct FilterRules {
    allowed: Option<Patterns>,
    denied: Patterns,
    error: ErrorObject,
}

impl Default for Filter {
    fn default() -> Self {
        let error = ErrorObject::method_not_found();
        Self(Arc::new(FilterRules { allowed: None, denied: Patterns::default(), error }))
    }
}

impl Filter {
    /// Allows every method.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows these methods. Methods that are not allowed explicitly are then rejected.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        let rules = Arc::make_mut(&mut self.0);
        rules.allowed.get_or_insert_default().extend(patterns);
        self
    }

    /// Denies these methods, even if they are allowed.
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.0).denied.extend(patterns);
        self
    }

    /// Rejects with this error instead of -32601.
    #[must_use]
    pub fn refusal(mut self, error: ErrorObject) -> Self {
        Arc::make_mut(&mut self.0).error = error;
        self
    }

    fn allows(&self, method: &str) -> bool {
        let rules = &*self.0;
        let allowed = rules.allowed.as_ref().is_none_or(|allowed| allowed.match_any(method));
        allowed && !rules.denied.match_any(method)
    }
}

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for Filter {
    type Future = ReadyCall<S, R>;

    fn call(&self, inner: &mut S, request: R) -> ReadyCall<S, R> {
        if self.allows(request.call().method.as_str()) {
            ReadyCall::new(inner, request)
        } else {
            ReadyCall::rejected(self.0.error.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_names_or_prefixes_and_a_denial_wins() {
        let filter = Filter::new().allow(["a", "db.*"]).deny(["db.drop*", "b"]);
        for (method, is_allowed) in
            [("a", true), ("ab", false), ("db.", true), ("db.get", true), ("db.drop_all", false)]
        {
            assert_eq!(filter.allows(method), is_allowed, "{method}");
        }
        assert!(!Filter::new().allow(Vec::<String>::new()).allows("a"), "nothing was allowed");
        assert!(Filter::new().allows("a"));
        assert!(!Filter::new().deny(["*"]).allows("a"));
    }
}
