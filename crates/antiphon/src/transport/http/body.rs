//! The body of a request, within its limits of size and time.

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::Limits;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};

use super::activity::Activity;
use super::answer::{self, HttpResponse};

/// How long the next piece of a body is waited for that nobody will look at.
const PATIENCE: Duration = Duration::from_secs(1);

/// A piece of a body, or its end.
pub(super) type Piece = Result<Option<Bytes>, Missing>;

/// Why a body did not come.
pub(super) enum Missing {
    Stalled,
    BrokenOff,
}

impl Missing {
    fn response(self) -> HttpResponse {
        match self {
            Self::Stalled => answer::stalled(),
            Self::BrokenOff => answer::text(StatusCode::BAD_REQUEST, "the body broke off\n"),
        }
    }
}

/// How long a body says it is, at least.
pub(super) fn announced(body: &impl Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The next piece of a body, if it is there.
pub(super) fn poll_piece<B>(body: &mut B, poller: &mut Poller<'_>) -> Poll<Piece>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    Pin::new(body).poll_frame(poller).map(|frame| match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => {
            tracing::debug!(%error, "a body broke off");
            Err(Missing::BrokenOff)
        }
    })
}

/// Reads a body to its end, from its first piece where that has come. A body in one piece is not
/// copied.
pub(super) async fn read<B>(
    body: &mut B,
    announced: usize,
    mut come: Poll<Piece>,
    limits: &Limits,
    watch: Option<&Activity>,
) -> Result<Bytes, HttpResponse>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let limit = limits.longest_frame();
    let mut size = announced;
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while size <= limit {
        let piece = match std::mem::replace(&mut come, Poll::Pending) {
            Poll::Ready(piece) => piece,
            Poll::Pending => next(body, limits.stall_timeout, watch).await,
        };
        let Some(chunk) = piece.map_err(Missing::response)? else {
            return Ok(if whole.is_empty() { first } else { whole.freeze() });
        };
        size = first.len() + whole.len() + chunk.len();
        if size > limit {
            break;
        }
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
    drop((first, whole));
    let_by(body, 4 * limit.min(16 << 20)).await;
    Err(answer::too_large(limit))
}

/// The next piece of a body, or that it does not come: told by whoever watches the connection, or by
/// a timer.
async fn next<B>(body: &mut B, limit: Duration, watch: Option<&Activity>) -> Piece
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    // Made when it is needed: most bodies are there.
    let mut timer = None;
    let piece = poll_fn(|poller| match (poll_piece(body, poller), watch) {
        (Poll::Ready(piece), _) => Poll::Ready(piece),
        (Poll::Pending, Some(watch)) => watch.poll_stalled(poller).map(|()| Err(Missing::Stalled)),
        (Poll::Pending, None) => {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            timer.as_mut().poll(poller).map(|()| Err(Missing::Stalled))
        }
    });
    let piece = piece.await;
    if let Some(watch) = watch {
        watch.moves_on();
    }
    piece
}

/// Lets some more of a refused body go by: a connection that is closed while its client still
/// sends is reset, and the client would not see why.
pub(super) async fn let_by<B: Body<Data = Bytes> + Unpin>(body: &mut B, mut bytes: usize) {
    while let Ok(Some(Ok(frame))) = timeout(PATIENCE, body.frame()).await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        if len > bytes {
            return;
        }
        bytes -= len;
    }
}
