//! Counts, durations, sizes and errors of calls, for Prometheus.
//!
//! The number of series is bounded. Methods that were not named at construction share one label, and so
//! do the error codes of a method beyond its first 32. A call that succeeds takes no lock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{Code, RawJson};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::policy::Policy;
use super::prometheus::MetricsText;
use crate::service::{CallService, LayerCall, ReadyCall};

/// The label of unknown methods, and of error codes beyond the limit.
const OTHER: &str = "(other)";
/// The number of error codes per method that have a series of their own.
const CODES: usize = 32;
/// The upper bounds of the latency buckets, in microseconds.
const BOUNDS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 10_000_000,
];

/// Counts calls by method. Clones share the counts.
///
/// | series | meaning |
/// |---|---|
/// | `antiphon_calls_total{method,kind}` | completed calls; `kind` is `request` or `notification` |
/// | `antiphon_call_errors_total{method,code}` | calls that failed |
/// | `antiphon_call_duration_seconds{method}` | duration, as a histogram |
/// | `antiphon_calls_in_flight{method}` | calls in flight |
/// | `antiphon_params_bytes_total{method}` | bytes of params |
/// | `antiphon_results_bytes_total{method}` | bytes of results |
///
/// ```
/// use antiphon::layer::Metrics;
/// use antiphon::{Context, Handler, Responder, Router};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let metrics = Metrics::new(router.names());
/// let responder = Responder::new(router.layer(metrics.clone()));
/// responder.answer(r#"{"jsonrpc":"2.0","method":"ping","id":1}"#).await;
/// assert!(metrics.render().contains(r#"calls_total{method="ping",kind="request"} 1"#));
/// # }
/// ```
///
/// [`Server::page`](crate::Server::page) can serve the text of [`render`](Self::render).
#[derive(Clone)]
pub struct Metrics(Arc<AllSeries>);

struct AllSeries {
    prefix: String,
    methods: HashMap<Box<str>, Arc<MethodSeries>>,
    other: Arc<MethodSeries>,
}

#[derive(Default)]
struct MethodSeries {
    requests: AtomicU64,
    notifications: AtomicU64,
    in_flight: AtomicU64,
    /// Calls per latency bucket. The last bucket is above all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    params: AtomicU64,
    results: AtomicU64,
    errors: Mutex<ErrorCounts>,
}

#[derive(Default)]
struct ErrorCounts {
    codes: BTreeMap<i64, u64>,
    other: u64,
}

impl Metrics {
    /// Counts each of these methods separately, and all others together.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::named("antiphon", names)
    }

    /// Like [`new`](Self::new), with this prefix instead of `antiphon`, for more than one instance in a
    /// process.
    pub fn named<'a>(prefix: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let methods = names.into_iter().map(|name| (name.into(), Arc::default())).collect();
        Self(Arc::new(AllSeries { prefix: prefix.to_owned(), methods, other: Arc::default() }))
    }

    /// The content type of the text that [`render`](Self::render) returns.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Returns all counts in the text format of Prometheus.
    pub fn render(&self) -> String {
        let mut all: Vec<(&str, &MethodSeries)> =
            self.0.methods.iter().map(|(name, series)| (&**name, &**series)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.push((OTHER, &self.0.other));
        let mut text = MetricsText::new(&self.0.prefix);
        text.family("calls_total", "counter", "Calls that have ended.");
        for (method, series) in &all {
            let [requests, notifications] = [&series.requests, &series.notifications].map(load);
            text.line(&[("method", method), ("kind", "request")], requests);
            text.line(&[("method", method), ("kind", "notification")], notifications);
        }
        text.family("call_errors_total", "counter", "Calls that ended with an error.");
        for (method, series) in &all {
            series.render_errors(method, &mut text);
        }
        text.family("call_duration_seconds", "histogram", "How long calls took.");
        for (method, series) in &all {
            series.render_buckets(method, &mut text);
        }
        let plain: [(&str, &str, &str, CountOf); 3] = [
            ("calls_in_flight", "gauge", "Calls under way.", |series| &series.in_flight),
            ("params_bytes_total", "counter", "Bytes of params.", |series| &series.params),
            ("results_bytes_total", "counter", "Bytes of results.", |series| &series.results),
        ];
        for (name, kind, help, of) in plain {
            text.family(name, kind, help);
            for (method, series) in &all {
                text.line(&[("method", method)], load(of(series)));
            }
        }
        text.finish()
    }

    fn series(&self, method: &str) -> &Arc<MethodSeries> {
        self.0.methods.get(method).unwrap_or(&self.0.other)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("prefix", &self.0.prefix).finish_non_exhaustive()
    }
}

type CountOf = fn(&MethodSeries) -> &AtomicU64;

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

impl MethodSeries {
    fn add_error(&self, Code(code): Code) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let ErrorCounts { codes, other } = &mut *errors;
        if codes.len() < CODES || codes.contains_key(&code) {
            *codes.entry(code).or_default() += 1;
        } else {
            *other += 1;
        }
    }

    fn render_errors(&self, method: &str, text: &mut MetricsText) {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        for (code, count) in &errors.codes {
            text.line(&[("method", method), ("code", &code.to_string())], *count);
        }
        if errors.other > 0 {
            text.line(&[("method", method), ("code", OTHER)], errors.other);
        }
    }

    fn render_buckets(&self, method: &str, text: &mut MetricsText) {
        let mut sum = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            sum += load(bucket);
            let bound = BOUNDS.get(at).map(|micros| seconds(*micros));
            let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
            text.suffixed("_bucket", &[("method", method), ("le", &bound)], &sum);
        }
        text.suffixed("_sum", &[("method", method)], &seconds(load(&self.micros)));
        text.suffixed("_count", &[("method", method)], &sum);
    }
}

/// Exact decimal seconds, without the rounding of a float.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for Metrics {
    type Future = MetricsCall<S, R>;

    fn call(&self, inner: &mut S, request: R) -> MetricsCall<S, R> {
        let call = request.call();
        let series = self.series(call.method.as_str()).clone();
        let params = call.params.as_ref().map_or(0, |params| params.as_json().as_bytes().len());
        add(&series.params, params);
        add(&series.in_flight, 1);
        let is_notification = request.is_notification();
        let record = CallRecord { series, started: Instant::now(), is_notification, outcome: None };
        MetricsCall { call: ReadyCall::new(inner, request), record }
    }
}

/// One call in flight, counted when it is dropped. A call without an outcome was cancelled.
struct CallRecord {
    series: Arc<MethodSeries>,
    started: Instant,
    is_notification: bool,
    /// The size of the result, or the error code.
    outcome: Option<Result<usize, Code>>,
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let series = &*self.series;
        series.in_flight.fetch_sub(1, Ordering::Relaxed);
        add(if self.is_notification { &series.notifications } else { &series.requests }, 1);
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        add(&series.buckets[bucket], 1);
        series.micros.fetch_add(micros, Ordering::Relaxed);
        match self.outcome.take().unwrap_or(Err(Code::CANCELLED)) {
            Ok(bytes) => add(&series.results, bytes),
            Err(code) => series.add_error(code),
        }
    }
}

pin_project! {
    /// A call that is counted.
    pub struct MetricsCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        #[pin]
        call: ReadyCall<S, R>,
        record: CallRecord,
    }
}

impl<S: CallService<R>, R: LayerCall> Future for MetricsCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.call.poll(poller));
        let bytes = outcome.as_ref().map(|result| result.as_bytes().len());
        this.record.outcome = Some(bytes.map_err(R::error_code));
        Poll::Ready(outcome)
    }
}
