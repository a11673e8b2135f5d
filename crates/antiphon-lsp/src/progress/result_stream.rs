//! Partial results on the client: a stream of the parts of a result.
//!
//! The reader of the connection queues each part before it delivers the response. So all parts that precede the
//! response are read before the stream ends, even if other handlers are slow.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon::{BoxFuture, Call, CallError, Cause, Method, Progress, ProgressWatch};
use futures_core::Stream;
use serde::Serialize;

use super::part_queue::PartQueue;
use super::{PartialResultParams, ResultOf, WorkDoneParams, WorkDoneReport};
use crate::RemoteServer;
use crate::types::{ProgressToken, Request, RequestWithPartialResults};

/// A `Stream` of the parts of a result, which ends when the response arrives. Created by
/// [`RemoteServer::partial_results`].
/// The request is sent when the stream is first polled, or by `response`. Dropping the stream cancels the request with
/// `$/cancelRequest`. At most 256 MiB of JSON is buffered. Beyond that, the stream fails with
/// [`CallError::OverLimit`], and the request is cancelled.
///
/// An error is the last item. [`response`](Self::response) returns the same error.
#[must_use = "the request is sent when the stream is polled"]
pub struct ResultStream<R: RequestWithPartialResults> {
    request: State<R::Result>,
    parts: Arc<PartQueue>,
    /// Ends the delivery of parts.
    _watch: Option<ProgressWatch>,
}

enum State<T> {
    Pending(BoxFuture<'static, Result<T, CallError>>),
    /// The response has arrived. If it is an error, the stream has not returned it yet.
    Done(Result<T, CallError>),
    /// The stream has ended with this error.
    Failed(CallError),
}

impl RemoteServer {
    /// Calls a request whose result may arrive in parts, and sets its `partialResultToken`.
    ///
    /// A server may send the whole result in the response, without parts. So read both:
    ///
    /// ```
    /// use antiphon::CallError;
    /// use antiphon_lsp::RemoteServer;
    /// use antiphon_lsp::types::ReferenceParams;
    /// use futures_util::StreamExt as _;
    ///
    /// async fn references(server: &RemoteServer, params: ReferenceParams) -> Result<(), CallError> {
    ///     let mut results = server.partial_results(params);
    ///     while let Some(locations) = results.next().await {
    ///         println!("{} more", locations?.len());
    ///     }
    ///     let rest = results.response().await?.unwrap_or_default();
    ///     println!("{} in the response", rest.len());
    ///     Ok(())
    /// }
    /// ```
    pub fn partial_results<P>(&self, params: P) -> ResultStream<P::Request>
    where
        P: PartialResultParams + Serialize,
    {
        self.streamed(params, |call| call)
    }

    /// Like [`partial_results`](Self::partial_results), with a stream of progress reports. That stream buffers 64
    /// reports and drops the oldest ones.
    pub fn partial_results_with_progress<P>(
        &self,
        params: P,
    ) -> (ResultStream<P::Request>, Progress<WorkDoneReport>)
    where
        P: PartialResultParams + WorkDoneParams + Serialize,
    {
        let mut progress = None;
        let results = self.streamed(params, |call| {
            let (call, reports) = call.with_progress();
            progress = Some(reports);
            call
        });
        (results, progress.expect("the call was made"))
    }

    fn streamed<P>(
        &self,
        mut params: P,
        prepare: impl FnOnce(Call<ResultOf<P>>) -> Call<ResultOf<P>>,
    ) -> ResultStream<P::Request>
    where
        P: PartialResultParams + Serialize,
    {
        let parts: Arc<PartQueue> = Arc::default();
        let watch = self.watch(&parts);
        *params.partial_result_token_mut() = watch.as_ref().ok().and_then(token);
        let call = prepare(self.call(<P::Request as Request>::METHOD.as_str(), params));
        let request = match &watch {
            Ok(_) => State::Pending(call.into_future()),
            Err(error) => State::Done(Err(error.clone())),
        };
        ResultStream { request, parts, _watch: watch.ok() }
    }

    fn watch(&self, parts: &Arc<PartQueue>) -> Result<ProgressWatch, CallError> {
        let peer = self.peer().ok_or(CallError::CannotCallBack("this transport"))?;
        let parts = parts.clone();
        peer.watch_progress(move |part| parts.push(part))
    }
}

/// Converts the token of a watch to the type of the protocol.
fn token(watch: &ProgressWatch) -> Option<ProgressToken> {
    serde_json::from_str(watch.token().as_str()).ok()
}

impl<R: RequestWithPartialResults> ResultStream<R> {
    /// Waits for the response, which contains everything that the server did not send in parts. Discards unread parts.
    pub async fn response(self) -> Result<R::Result, CallError> {
        self.parts.ignore();
        match self.request {
            State::Pending(request) => request.await,
            State::Done(outcome) => outcome,
            State::Failed(error) => Err(error),
        }
    }

    /// Returns the next part, or the reason why there are no more parts.
    fn poll_part(&self, poller: &Poller<'_>) -> Poll<Result<R::PartialResult, CallError>> {
        let part = match self.parts.poll(poller) {
            Poll::Ready(part) => part?,
            Poll::Pending => return Poll::Pending,
        };
        let method = || Method::new(<R as Request>::METHOD.as_str());
        let decoded = part.decode();
        Poll::Ready(
            decoded
                .map_err(|error| CallError::Decode { method: method(), source: Cause::new(error) }),
        )
    }

    /// Ends the stream with this error, and cancels the request.
    fn fail(&mut self, error: CallError) -> Poll<Option<Result<R::PartialResult, CallError>>> {
        self.request = State::Failed(error.clone());
        Poll::Ready(Some(Err(error)))
    }
}

impl<R: RequestWithPartialResults> Stream for ResultStream<R> {
    type Item = Result<R::PartialResult, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if matches!(this.request, State::Failed(_)) {
            return Poll::Ready(None);
        }
        loop {
            match this.poll_part(poller) {
                Poll::Ready(Ok(part)) => return Poll::Ready(Some(Ok(part))),
                Poll::Ready(Err(error)) => return this.fail(error),
                Poll::Pending => {}
            }
            match &mut this.request {
                State::Pending(request) => {
                    let outcome = ready!(request.as_mut().poll(poller));
                    this.request = State::Done(outcome);
                    // Parts that precede the response are already in the queue.
                }
                State::Done(Err(error)) => {
                    let error = error.clone();
                    return this.fail(error);
                }
                State::Done(Ok(_)) | State::Failed(_) => return Poll::Ready(None),
            }
        }
    }
}

/// No field is self-referential.
impl<R: RequestWithPartialResults> Unpin for ResultStream<R> {}

impl<R: RequestWithPartialResults> fmt::Debug for ResultStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultStream").field("method", &R::METHOD.as_str()).finish_non_exhaustive()
    }
}
