//! The body type of HTTP requests and responses.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::activity::{ActiveBody, ActiveRequest};
use super::event_stream::EventStream;
use crate::layer::BoxError;
use crate::same_type::same_type;

/// The body of an HTTP request or response: bytes, a stream of events, or any other body.
///
/// ```
/// use antiphon::transport::http::HttpBody;
///
/// let response = http::Response::new(HttpBody::from("not here"));
/// ```
#[derive(Default)]
pub struct HttpBody(BodyKind);

enum BodyKind {
    Full(Full<Bytes>),
    Incoming(Incoming),
    /// The second part marks the connection as active until the body is sent.
    Boxed(UnsyncBoxBody<Bytes, BoxError>, Option<ActiveBody>),
}

impl Default for BodyKind {
    fn default() -> Self {
        Self::Full(Full::default())
    }
}

impl HttpBody {
    /// Wraps any body. An `HttpBody` stays as it is.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let body = match same_type::<B, Self>(body) {
            Ok(body) => return body,
            Err(body) => body,
        };
        match same_type::<B, Incoming>(body) {
            Ok(incoming) => Self(BodyKind::Incoming(incoming)),
            Err(body) => Self(BodyKind::Boxed(body.map_err(Into::into).boxed_unsync(), None)),
        }
    }

    /// Ends the body early when the token is cancelled.
    pub(super) fn until(self, cancelled: CancellationToken) -> Self {
        let cancelled = Box::pin(cancelled.cancelled_owned());
        Self::new(UntilCancelled { body: self, cancelled })
    }

    /// Keeps the connection active until the body is sent, unless it is sent in one piece.
    pub(super) fn hold_active(&mut self, active: ActiveRequest) {
        if let BodyKind::Boxed(_, held) = &mut self.0 {
            *held = Some(ActiveBody::new(active));
        }
    }
}

/// A body that ends early when a token is cancelled.
struct UntilCancelled {
    body: HttpBody,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Body for UntilCancelled {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(poller) {
            Poll::Pending => self.cancelled.as_mut().poll(poller).map(|()| None),
            ready => ready,
        }
    }
}

impl From<Bytes> for HttpBody {
    fn from(bytes: Bytes) -> Self {
        Self(BodyKind::Full(Full::new(bytes)))
    }
}

impl From<Vec<u8>> for HttpBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for HttpBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for HttpBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<EventStream> for HttpBody {
    fn from(stream: EventStream) -> Self {
        Self::new(stream)
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = BoxError;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            BodyKind::Full(body) => {
                Pin::new(body).poll_frame(poller).map_err(|never| match never {})
            }
            BodyKind::Incoming(body) => Pin::new(body).poll_frame(poller).map_err(Into::into),
            BodyKind::Boxed(body, None) => Pin::new(body).poll_frame(poller),
            BodyKind::Boxed(body, Some(active)) => {
                let frame = Pin::new(body).poll_frame(poller);
                active.set_unread(matches!(frame, Poll::Ready(Some(_))));
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Full(body) => body.is_end_stream(),
            BodyKind::Incoming(body) => body.is_end_stream(),
            BodyKind::Boxed(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Full(body) => body.size_hint(),
            BodyKind::Incoming(body) => body.size_hint(),
            BodyKind::Boxed(body, _) => body.size_hint(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}
