//! The progress of a service as progress of the protocol: a number that grows, perhaps a total, perhaps a text.

use antiphon::RawJson;
use serde_json::Value;

use crate::RequestContext;

/// Passes the progress of one call on.
pub(super) struct ProgressRelay {
    cx: RequestContext,
    /// The number of reports, for services whose reports have no number.
    reports: u32,
}

impl ProgressRelay {
    pub(super) fn new(cx: RequestContext) -> Self {
        Self { cx, reports: 0 }
    }

    /// Reports a value to the client.
    pub(super) async fn report(&mut self, value: &RawJson) {
        self.reports = self.reports.saturating_add(1);
        let value: Value = value.decode().unwrap_or_default();
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let message = text("message").or_else(|| text("title")).or_else(|| value.as_str());
        let (progress, total) = match (number("progress"), number("percentage")) {
            (Some(progress), _) => (progress, number("total")),
            (None, Some(percentage)) => (percentage, Some(100.0)),
            (None, None) => (value.as_f64().unwrap_or_else(|| f64::from(self.reports)), None),
        };
        self.cx.progress(progress, total, message).await;
    }
}
