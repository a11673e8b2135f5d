//! Reading the body of a request, within the limits of size and time.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError};
use tokio::time::{Sleep, sleep, timeout};

use super::activity::RequestActivity;
use super::http_body::HttpBody;
use super::refusal::HttpRefusal;
use super::rules;
use crate::layer::BoxError;

/// The longest pause between two chunks of a body that is discarded.
const DISCARD_PAUSE: Duration = Duration::from_secs(1);
/// The time after which a body is no longer discarded.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// A chunk of a body, or its end.
pub(super) type BodyChunk = Result<Option<Bytes>, HttpRefusal>;

/// The length of a body by its head, or the least length that is known.
pub(super) fn known_length(body: &impl Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The next chunk of a body.
pub(super) fn poll_chunk<B>(body: &mut B, poller: &mut Poller<'_>) -> Poll<BodyChunk>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    Pin::new(body).poll_frame(poller).map(|frame| match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => Err(refusal(&*error.into())),
    })
}

fn refusal(error: &(dyn Error + 'static)) -> HttpRefusal {
    tracing::debug!(%error, "a body ended early");
    // A server such as axum wraps the error of a layer in its own.
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return HttpRefusal::BodyOverLayerLimit;
        }
        if error.is::<BodyStalled>() {
            return HttpRefusal::BodyTimedOut;
        }
        next = error.source();
    }
    HttpRefusal::BodyIncomplete
}

/// The next part of a body did not arrive within the stall timeout.
#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive within the stall timeout")]
struct BodyStalled;

/// The stall timeout of one body.
struct BodyTimeout {
    limit: Duration,
    /// The activity whose watchdog reports a stall. Without one, a timer does.
    watch: Option<Arc<RequestActivity>>,
    /// Created on first use: most bodies have arrived.
    timer: Option<Pin<Box<Sleep>>>,
    /// The last poll of the body was pending.
    is_waiting: bool,
}

impl BodyTimeout {
    fn new(limits: &Limits, watch: Option<Arc<RequestActivity>>) -> Self {
        Self { limit: limits.stall_timeout, watch, timer: None, is_waiting: false }
    }

    /// Passes on a poll of the body, or fails when it has been pending for too long.
    fn check<T>(
        &mut self,
        polled: Poll<T>,
        poller: &mut Poller<'_>,
    ) -> Poll<Result<T, BodyStalled>> {
        let Self { limit, watch, timer, is_waiting } = self;
        let checked = match (polled, watch) {
            (Poll::Ready(polled), _) => Ok(polled),
            (Poll::Pending, watch) => {
                *is_waiting = true;
                ready!(match watch {
                    Some(watch) => watch.poll_stalled(poller),
                    None => {
                        timer.get_or_insert_with(|| Box::pin(sleep(*limit))).as_mut().poll(poller)
                    }
                });
                Err(BodyStalled)
            }
        };
        self.resume();
        Poll::Ready(checked)
    }

    fn resume(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.timer = None;
            if let Some(watch) = &self.watch {
                watch.resume();
            }
        }
    }
}

/// A body that is dropped is not waited for. Its report must not fail the next body of the connection.
impl Drop for BodyTimeout {
    fn drop(&mut self) {
        self.resume();
    }
}

/// A body that fails when its next part does not arrive within the stall timeout.
struct TimedBody {
    body: HttpBody,
    timeout: BodyTimeout,
}

/// The body of a request for a layer or the fallback, which read it themselves.
pub(super) fn timed<B>(body: B, limits: &Limits, watch: Option<Arc<RequestActivity>>) -> HttpBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let body = HttpBody::new(body);
    match body.is_end_stream() {
        true => body,
        false => HttpBody::new(TimedBody { body, timeout: BodyTimeout::new(limits, watch) }),
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body, timeout } = &mut *self;
        let frame = Pin::new(body).poll_frame(poller);
        timeout
            .check(frame, poller)
            .map(|frame| frame.unwrap_or_else(|error| Some(Err(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a body to its end, beginning with `first_poll`, a poll that took place before. A body of one
/// chunk is not copied.
pub(super) async fn read<B>(
    mut body: B,
    first_poll: Poll<BodyChunk>,
    limits: &Limits,
    watch: Option<Arc<RequestActivity>>,
) -> Result<Bytes, HttpRefusal>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let read = read_within(&mut body, first_poll, limits, watch).await;
    if let Err(HttpRefusal::BodyTooLarge(limit)) = read {
        discard(body, 4 * limit.min(16 << 20));
    }
    read
}

async fn read_within<B>(
    body: &mut B,
    mut first_poll: Poll<BodyChunk>,
    limits: &Limits,
    watch: Option<Arc<RequestActivity>>,
) -> Result<Bytes, HttpRefusal>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut timeout = BodyTimeout::new(limits, watch);
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        let chunk = match std::mem::replace(&mut first_poll, Poll::Pending) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => next(body, &mut timeout).await,
        };
        let Some(chunk) = chunk? else {
            return Ok(if whole.is_empty() { first } else { whole.freeze() });
        };
        rules::fits(first.len() + whole.len() + chunk.len(), limits)?;
        if body.is_end_stream() && whole.is_empty() && first.is_empty() {
            return Ok(chunk);
        }
        if whole.is_empty() && first.is_empty() {
            first = chunk;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&chunk);
        }
    }
}

/// The next chunk of a body. Fails when it does not arrive in time.
async fn next<B>(body: &mut B, timeout: &mut BodyTimeout) -> BodyChunk
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    poll_fn(|poller| {
        let chunk = poll_chunk(body, poller);
        timeout.check(chunk, poller)
    })
    .await
    .unwrap_or(Err(HttpRefusal::BodyTimedOut))
}

/// Reads and drops up to this many bytes of a refused body, in a task, so that the response is sent immediately. A
/// connection that is closed while its client still sends is reset, and the client does not see the response.
pub(super) fn discard<B>(mut body: B, mut bytes: usize)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    if body.is_end_stream() {
        return;
    }
    let discarding = async move {
        while let Ok(Some(Ok(frame))) = timeout(DISCARD_PAUSE, body.frame()).await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            if len > bytes {
                return;
            }
            bytes -= len;
        }
    };
    tokio::spawn(timeout(DISCARD_TIME, discarding));
}
