//! Reading the body of a request, within the limits of size and time.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::Limits;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError};
use tokio::time::{sleep, timeout};

use super::activity::RequestActivity;
use super::refusal::HttpRefusal;
use super::rules;
use crate::layer::BoxError;

/// The longest pause between two chunks of a body that is discarded.
const DISCARD_PAUSE: Duration = Duration::from_secs(1);

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

fn refusal(error: &(dyn Error + Send + Sync + 'static)) -> HttpRefusal {
    tracing::debug!(%error, "a body ended early");
    match error.is::<LengthLimitError>() {
        true => HttpRefusal::BodyOverLayerLimit,
        false => HttpRefusal::BodyIncomplete,
    }
}

/// Reads a body to its end, beginning with `first_poll`, a poll that took place before. A body of one
/// chunk is not copied.
pub(super) async fn read<B>(
    body: &mut B,
    first_poll: Poll<BodyChunk>,
    limits: &Limits,
    watch: Option<&RequestActivity>,
) -> Result<Bytes, HttpRefusal>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let read = read_within(body, first_poll, limits, watch).await;
    if let Err(HttpRefusal::BodyTooLarge(limit)) = read {
        discard(body, 4 * limit.min(16 << 20)).await;
    }
    read
}

async fn read_within<B>(
    body: &mut B,
    mut first_poll: Poll<BodyChunk>,
    limits: &Limits,
    watch: Option<&RequestActivity>,
) -> Result<Bytes, HttpRefusal>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        let chunk = match std::mem::replace(&mut first_poll, Poll::Pending) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => next(body, limits.stall_timeout, watch).await,
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

/// The next chunk of a body. Fails when it does not arrive in time: the watchdog of the connection
/// reports that, and otherwise a timer.
async fn next<B>(body: &mut B, limit: Duration, watch: Option<&RequestActivity>) -> BodyChunk
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    // Created on first use: most bodies have arrived.
    let mut timer = None;
    let chunk = poll_fn(|poller| match (poll_chunk(body, poller), watch) {
        (Poll::Ready(chunk), _) => Poll::Ready(chunk),
        (Poll::Pending, Some(watch)) => {
            watch.poll_stalled(poller).map(|()| Err(HttpRefusal::BodyTimedOut))
        }
        (Poll::Pending, None) => {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            timer.as_mut().poll(poller).map(|()| Err(HttpRefusal::BodyTimedOut))
        }
    });
    let chunk = chunk.await;
    if let Some(watch) = watch {
        watch.resume();
    }
    chunk
}

/// Reads and drops up to this many bytes of a refused body. A connection that is closed while its
/// client still sends is reset, and the client does not see the response.
pub(super) async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B, mut bytes: usize) {
    while let Ok(Some(Ok(frame))) = timeout(DISCARD_PAUSE, body.frame()).await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        if len > bytes {
            return;
        }
        bytes -= len;
    }
}
