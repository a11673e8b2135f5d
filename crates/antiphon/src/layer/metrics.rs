//! How many calls, how long, how many bytes, which errors: for Prometheus.
//!
//! The number of series is bounded by the names that it was made with: a caller who makes names up is
//! counted under one label, and so are codes past the first 32 of a method. Nothing is locked for a call
//! that succeeds.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{Code, RawJson};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::exposition::Page;
use super::pass::Passing;
use super::passage::Passage;
use super::{BoxError, Wrapped, always_ready};

/// The label of methods that are not known.
const OTHER: &str = "(other)";
/// Codes that a method has series of its own for.
const CODES: usize = 32;
/// The upper bounds of the latency buckets, in microseconds.
const BOUNDS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 10_000_000,
];

/// Counts calls by method. Clones share the counts.
///
/// | series | what |
/// |---|---|
/// | `antiphon_calls_total{method,kind}` | calls that have ended, `kind` is `request` or `notification` |
/// | `antiphon_call_errors_total{method,code}` | those that ended with an error |
/// | `antiphon_call_duration_seconds{method}` | a histogram |
/// | `antiphon_calls_in_flight{method}` | calls under way |
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
/// [`Server::page`](crate::Server::page) serves what it renders.
#[derive(Clone)]
pub struct Metrics(Arc<Registry>);

struct Registry {
    prefix: String,
    methods: HashMap<Box<str>, Arc<Series>>,
    other: Arc<Series>,
}

#[derive(Default)]
struct Series {
    requests: AtomicU64,
    notifications: AtomicU64,
    in_flight: AtomicU64,
    /// Calls by bucket; the last is for what is over all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    params: AtomicU64,
    results: AtomicU64,
    errors: Mutex<Errors>,
}

#[derive(Default)]
struct Errors {
    codes: BTreeMap<i64, u64>,
    other: u64,
}

impl Metrics {
    /// Counts under each of these names, and all others together.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::named("antiphon", names)
    }

    /// The same with a prefix of its own in place of `antiphon`, for more than one in a process.
    pub fn named<'a>(prefix: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let methods = names.into_iter().map(|name| (name.into(), Arc::default())).collect();
        Self(Arc::new(Registry { prefix: prefix.to_owned(), methods, other: Arc::default() }))
    }

    /// The type of what [`render`](Self::render) gives.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// All counts, as Prometheus reads them.
    pub fn render(&self) -> String {
        let mut all: Vec<(&str, &Series)> =
            self.0.methods.iter().map(|(name, series)| (&**name, &**series)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.push((OTHER, &self.0.other));
        let mut page = Page::new(&self.0.prefix);
        page.family("calls_total", "counter", "Calls that have ended.");
        for (method, series) in &all {
            let [requests, notifications] = [&series.requests, &series.notifications].map(load);
            page.line(&[("method", method), ("kind", "request")], requests);
            page.line(&[("method", method), ("kind", "notification")], notifications);
        }
        page.family("call_errors_total", "counter", "Calls that ended with an error.");
        for (method, series) in &all {
            series.render_errors(method, &mut page);
        }
        page.family("call_duration_seconds", "histogram", "How long calls took.");
        for (method, series) in &all {
            series.render_buckets(method, &mut page);
        }
        let plain: [(&str, &str, &str, CountOf); 3] = [
            ("calls_in_flight", "gauge", "Calls under way.", |series| &series.in_flight),
            ("params_bytes_total", "counter", "Bytes of params.", |series| &series.params),
            ("results_bytes_total", "counter", "Bytes of results.", |series| &series.results),
        ];
        for (name, kind, help, of) in plain {
            page.family(name, kind, help);
            for (method, series) in &all {
                page.line(&[("method", method)], load(of(series)));
            }
        }
        page.finish()
    }

    fn series(&self, method: &str) -> &Arc<Series> {
        self.0.methods.get(method).unwrap_or(&self.0.other)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("prefix", &self.0.prefix).finish_non_exhaustive()
    }
}

type CountOf = fn(&Series) -> &AtomicU64;

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

impl Series {
    fn fail(&self, Code(code): Code) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let Errors { codes, other } = &mut *errors;
        if codes.len() < CODES || codes.contains_key(&code) {
            *codes.entry(code).or_default() += 1;
        } else {
            *other += 1;
        }
    }

    fn render_errors(&self, method: &str, page: &mut Page) {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        for (code, count) in &errors.codes {
            page.line(&[("method", method), ("code", &code.to_string())], *count);
        }
        if errors.other > 0 {
            page.line(&[("method", method), ("code", OTHER)], errors.other);
        }
    }

    fn render_buckets(&self, method: &str, page: &mut Page) {
        let mut sum = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            sum += load(bucket);
            let bound = BOUNDS.get(at).map(|micros| seconds(*micros));
            let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
            page.suffixed("_bucket", &[("method", method), ("le", &bound)], &sum);
        }
        page.suffixed("_sum", &[("method", method)], &seconds(load(&self.micros)));
        page.suffixed("_count", &[("method", method)], &sum);
    }
}

/// Exactly, without the noise of a float.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

impl<S> Layer<S> for Metrics {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S, R> Service<R> for Wrapped<Metrics, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Counted<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let call = request.call();
        let series = self.policy.series(call.method.as_str()).clone();
        add(
            &series.params,
            call.params.as_ref().map_or(0, |params| params.as_json().as_bytes().len()),
        );
        add(&series.in_flight, 1);
        let is_notification = request.is_notification();
        let tally = Tally { series, started: Instant::now(), is_notification, ended: None };
        Counted { passage: Passage::enter(&mut self.inner, request), tally }
    }
}

/// One call under way. One that never ends was cancelled.
struct Tally {
    series: Arc<Series>,
    started: Instant,
    is_notification: bool,
    ended: Option<Result<usize, Code>>,
}

impl Drop for Tally {
    fn drop(&mut self) {
        let series = &*self.series;
        series.in_flight.fetch_sub(1, Ordering::Relaxed);
        add(if self.is_notification { &series.notifications } else { &series.requests }, 1);
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        add(&series.buckets[bucket], 1);
        series.micros.fetch_add(micros, Ordering::Relaxed);
        match self.ended.take().unwrap_or(Err(Code::CANCELLED)) {
            Ok(bytes) => add(&series.results, bytes),
            Err(code) => series.fail(code),
        }
    }
}

pin_project! {
    /// A call that is counted.
    pub struct Counted<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        #[pin]
        passage: Passage<S, R>,
        tally: Tally,
    }
}

impl<S, R> Future for Counted<S, R>
where
    S: Service<R, Response = RawJson>,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.passage.poll(poller));
        let ended = outcome.as_ref().map(|result| result.as_bytes().len());
        this.tally.ended = Some(ended.map_err(R::code));
        Poll::Ready(outcome)
    }
}
