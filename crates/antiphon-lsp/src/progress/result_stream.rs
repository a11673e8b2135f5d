//! The result of a request in parts, as an editor reads it.
//!
//! The reader of the connection puts each part into a queue, before it delivers the response. So the parts that were
//! sent before the response are read before the end, however slow other handlers are.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker, ready};

use antiphon::{BoxFuture, Call, CallError, Cause, Method, Progress, ProgressWatch, RawJson};
use futures_core::Stream;
use serde::Serialize;

use super::{PartialResultParams, ResultOf, WorkDoneParams, WorkDoneReport};
use crate::RemoteServer;
use crate::types::{ProgressToken, Request, RequestWithPartialResults};

/// The most bytes of parts that wait to be read.
const MAX_BYTES: usize = 256 << 20;

/// The parts of a result: a `Stream` that ends when the response arrives. Created by
/// [`RemoteServer::partial_results`].
///
/// The request is sent when the stream is first polled. Dropping the stream cancels it, with `$/cancelRequest`. Up to
/// 256 MiB of JSON may wait to be read; beyond that the stream fails with [`CallError::OverLimit`], and the request is
/// cancelled.
///
/// An error is the last item. [`response`](Self::response) returns it too.
#[must_use = "the request is sent when the stream is polled"]
pub struct ResultStream<R: RequestWithPartialResults> {
    request: State<R::Result>,
    parts: Arc<Parts>,
    /// Ends the delivery of parts.
    _watch: Option<ProgressWatch>,
}

enum State<T> {
    Pending(BoxFuture<'static, Result<T, CallError>>),
    /// The response. An error was not read yet.
    Done(Result<T, CallError>),
    /// The stream has ended with this error.
    Failed(CallError),
}

#[derive(Default)]
struct Parts(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    parts: VecDeque<RawJson>,
    bytes: usize,
    is_over_limit: bool,
    reader: Option<Waker>,
}

impl RemoteServer {
    /// Calls a request whose result may arrive in parts, and sets its `partialResultToken`.
    ///
    /// A server may send no parts, and everything in the response. So read both:
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

    /// Like [`partial_results`](Self::partial_results), with the progress of the work. That stream drops the oldest of
    /// more than 64 reports that were not read.
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
        let parts: Arc<Parts> = Arc::default();
        let watch = self.watch(&parts);
        *params.partial_result_token_mut() = watch.as_ref().ok().and_then(token);
        let call = prepare(self.call(<P::Request as Request>::METHOD.as_str(), params));
        let request = match &watch {
            Ok(_) => State::Pending(call.into_future()),
            Err(error) => State::Done(Err(error.clone())),
        };
        ResultStream { request, parts, _watch: watch.ok() }
    }

    fn watch(&self, parts: &Arc<Parts>) -> Result<ProgressWatch, CallError> {
        let peer = self.client().peer().ok_or(CallError::CannotCallBack("this transport"))?;
        let parts = parts.clone();
        peer.watch_progress(move |part| parts.push(part))
    }
}

/// The token of a watch, as a type of the protocol.
fn token(watch: &ProgressWatch) -> Option<ProgressToken> {
    serde_json::from_str(watch.token().as_str()).ok()
}

impl<R: RequestWithPartialResults> ResultStream<R> {
    /// Waits for the response: what the server has not sent in parts. Parts that were not read are lost.
    pub async fn response(self) -> Result<R::Result, CallError> {
        self.parts.ignore();
        match self.request {
            State::Pending(request) => request.await,
            State::Done(outcome) => outcome,
            State::Failed(error) => Err(error),
        }
    }

    /// The next part that has arrived, or the reason why there are no more.
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

    /// Ends the stream with this error, and the request with it.
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
                    // The last parts have arrived before the response.
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

/// Nothing in it refers to itself.
impl<R: RequestWithPartialResults> Unpin for ResultStream<R> {}

impl<R: RequestWithPartialResults> fmt::Debug for ResultStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultStream").field("method", &R::METHOD.as_str()).finish_non_exhaustive()
    }
}

impl Parts {
    /// Keeps a part. Called by the reader of the connection, so it never waits.
    fn push(&self, part: RawJson) {
        let mut waiting = self.waiting();
        if waiting.is_over_limit {
            return;
        }
        waiting.bytes += part.as_str().len();
        waiting.is_over_limit = waiting.bytes > MAX_BYTES;
        if !waiting.is_over_limit {
            waiting.parts.push_back(part);
        }
        let reader = waiting.reader.take();
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Keeps no parts from now on.
    fn ignore(&self) {
        let mut waiting = self.waiting();
        waiting.is_over_limit = true;
        waiting.parts.clear();
    }

    fn poll(&self, poller: &Poller<'_>) -> Poll<Result<RawJson, CallError>> {
        let mut waiting = self.waiting();
        if let Some(part) = waiting.parts.pop_front() {
            waiting.bytes -= part.as_str().len();
            return Poll::Ready(Ok(part));
        }
        if waiting.is_over_limit {
            let cause = format!("more than {MAX_BYTES} bytes of parts were not read in time");
            return Poll::Ready(Err(CallError::OverLimit(cause.into())));
        }
        waiting.reader = Some(poller.waker().clone());
        Poll::Pending
    }

    /// No code that holds the lock can panic halfway through a change.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_that_wait_are_bounded() {
        let parts = Parts::default();
        let poller = Poller::from_waker(Waker::noop());
        let part = RawJson::parse("\"four\"").unwrap();
        parts.waiting().bytes = MAX_BYTES - 2 * part.as_str().len();
        for _ in 0..4 {
            parts.push(part.clone());
        }
        let kept = (0..9).take_while(|_| matches!(parts.poll(&poller), Poll::Ready(Ok(_)))).count();
        assert_eq!(kept, 2);
        let Poll::Ready(Err(error)) = parts.poll(&poller) else { panic!("no error") };
        assert!(matches!(error, CallError::OverLimit(_)), "{error:?}");
    }
}
