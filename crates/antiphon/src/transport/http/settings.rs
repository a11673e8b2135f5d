//! The settings of a server that only HTTP has.

use std::sync::Arc;

use http::HeaderValue;

use super::bitcoin_policy::BitcoinPolicy;
use super::boxed_service::BoxedService;
use super::guard::Guard;
use super::policy::HttpPolicy;
use super::server_service::HttpServerService;
use crate::dialect::Dialect;

/// Everything that a server sets for HTTP.
#[derive(Clone, Default)]
pub(crate) struct HttpSettings {
    pub(crate) guard: Guard,
    pub(crate) pages: Vec<TextPage>,
    /// The layers around each request.
    pub(crate) layers: Option<HttpServerService>,
    /// `None` for the default policy, so that the fast path stays on.
    pub(crate) policy: Option<Arc<dyn HttpPolicy>>,
    pub(crate) fallback: Option<BoxedService>,
}

impl HttpSettings {
    /// Sets the policy of the dialect, unless the application has set one.
    pub(crate) fn in_dialect(mut self, dialect: &Dialect) -> Self {
        if dialect.bitcoin_http {
            self.policy.get_or_insert_with(|| Arc::new(BitcoinPolicy::new()));
        }
        self
    }

    /// Restricts a server on a loopback address to loopback Hosts.
    pub(crate) fn loopback_only(mut self, is_loopback: bool) -> Self {
        if is_loopback {
            self.guard = self.guard.loopback_by_default();
        }
        self
    }
}

/// A text that is served by GET beside the service.
#[derive(Clone)]
pub(crate) struct TextPage {
    pub(super) path: String,
    pub(super) content_type: HeaderValue,
    pub(super) text: Arc<dyn Fn() -> String + Send + Sync>,
}

impl TextPage {
    pub(crate) fn new(
        path: &str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self { path: path.to_owned(), content_type, text: Arc::new(text) }
    }
}
