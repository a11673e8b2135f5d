//! Which methods may be called at all?

use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, RawJson};
use tower_layer::Layer;
use tower_service::Service;

use super::pass::Passing;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};

/// Lets some methods through, and answers for the others as if they were not there.
///
/// A pattern is a method's name, or the beginning of one and a `*`. Without anything allowed, all is
/// that is not denied; what is both is denied. `rpc.discover` describes the router, which knows of no
/// layers: it still names what is refused here, so deny it too where the names are a secret.
///
/// ```
/// use antiphon::layer::Filter;
/// use antiphon::{Handler, Router};
///
/// # let router = Router::new();
/// let service = router.layer(Filter::new().allow(["eth_*", "net_version"]).deny(["eth_sign"]));
/// ```
#[derive(Clone, Debug)]
pub struct Filter(Arc<Rules>);

#[derive(Clone, Debug)]
struct Rules {
    allowed: Option<Patterns>,
    denied: Patterns,
    refusal: ErrorObject,
}

impl Default for Filter {
    fn default() -> Self {
        let refusal = ErrorObject::method_not_found();
        Self(Arc::new(Rules { allowed: None, denied: Patterns::default(), refusal }))
    }
}

impl Filter {
    /// Lets everything through.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets these through, and nothing else that is not allowed too.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        let rules = Arc::make_mut(&mut self.0);
        rules.allowed.get_or_insert_default().extend(patterns);
        self
    }

    /// Refuses these, whatever is allowed.
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.0).denied.extend(patterns);
        self
    }

    /// Answers with this error in place of -32601.
    #[must_use]
    pub fn refusal(mut self, error: ErrorObject) -> Self {
        Arc::make_mut(&mut self.0).refusal = error;
        self
    }

    fn lets(&self, method: &str) -> bool {
        let rules = &*self.0;
        let allowed = rules.allowed.as_ref().is_none_or(|allowed| allowed.match_any(method));
        allowed && !rules.denied.match_any(method)
    }
}

/// Names, and beginnings of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn extend<P: Into<String>>(&mut self, patterns: impl IntoIterator<Item = P>) {
        self.0.extend(patterns.into_iter().map(Into::into));
    }

    pub(super) fn match_any(&self, method: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => method.starts_with(start),
            None => method == pattern,
        })
    }
}

impl<S> Layer<S> for Filter {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S, R> Service<R> for Wrapped<Filter, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Passage<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, request: R) -> Self::Future {
        if self.policy.lets(request.call().method.as_str()) {
            Passage::enter(&mut self.inner, request)
        } else {
            Passage::refuse(self.policy.0.refusal.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beginnings_and_the_last_word_of_a_denial() {
        let filter = Filter::new().allow(["a", "db.*"]).deny(["db.drop*", "b"]);
        for (method, passes) in
            [("a", true), ("ab", false), ("db.", true), ("db.get", true), ("db.drop_all", false)]
        {
            assert_eq!(filter.lets(method), passes, "{method}");
        }
        assert!(!Filter::new().allow(Vec::<String>::new()).lets("a"), "nothing was allowed");
        assert!(Filter::new().lets("a"));
        assert!(!Filter::new().deny(["*"]).lets("a"));
    }
}
