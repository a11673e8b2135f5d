//! Exchanges by HTTP/1.1, each on a connection that it has to itself.
//!
//! A request is sent again only where it is certain that the server has seen nothing of it: on a
//! connection that had rested, and that was found closed before anything was sent. RFC 9110, section
//! 9.2.2, allows no more, since a call may do something.
//!
//! Rejected: hyper's client, which drives a connection in a task of its own. A call then passes two
//! channels and wakes two tasks: it took five times the instructions.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::Limits;
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;

use super::client_service::whole;
use super::connection::Http1Connection;
use super::connector::StreamConnector;
use super::error::ExchangeError;
use super::pool::ConnectionPool;
use super::request::{RequestBuffer, RequestHead};
use super::response::{Response, ResponseReader};
use crate::call::CallError;
use crate::transport::http::listener::KEEP_ALIVE;

/// What a connection may rest without the runtime being asked first what has come meanwhile.
const BRIEF: Duration = Duration::from_millis(1);

pub(super) struct Http1<D: StreamConnector> {
    dial: D,
    head: RequestHead,
    pool: Arc<ConnectionPool<Http1Connection<D::Stream>>>,
    limit: usize,
    stall: Duration,
}

impl<D: StreamConnector> Http1<D> {
    pub(super) fn new(dial: D, uri: &Uri, headers: &HeaderMap, limits: &Limits) -> Self {
        Self {
            dial,
            head: RequestHead::new(uri, headers),
            pool: ConnectionPool::new(limits.idle_timeout.unwrap_or(KEEP_ALIVE)),
            limit: limits.longest_frame(),
            stall: limits.stall_timeout,
        }
    }

    pub(super) fn draft(&self, message: usize) -> RequestBuffer {
        self.head.draft(message)
    }

    pub(super) async fn post(&self, draft: RequestBuffer) -> Result<Response, ExchangeError> {
        self.exchange(draft, || ResponseReader::new(self.limit)).await
    }

    /// The same for a request that says all by itself, with the headers of its answer.
    pub(super) async fn post_whole(
        &self,
        request: &Request<Bytes>,
    ) -> Result<Response, ExchangeError> {
        let head = RequestHead::new(request.uri(), request.headers());
        let mut draft = head.buffer_with(request.body().len(), &HeaderMap::new());
        draft.text.extend_from_slice(request.body());
        self.exchange(draft, || ResponseReader::new(self.limit).with_headers()).await
    }

    async fn exchange(
        &self,
        mut draft: RequestBuffer,
        reader: impl Fn() -> ResponseReader,
    ) -> Result<Response, ExchangeError> {
        let own = draft.own.take();
        let head = own.as_ref().and_then(|own| own.head.as_ref()).unwrap_or(&self.head);
        let mut request = head.finish(draft);
        loop {
            let mut connection = match self.rested().await {
                Some(connection) => connection,
                None => Box::pin(self.connect()).await?,
            };
            match connection.exchange(&mut request, reader(), self.stall).await {
                // This one was closed after all.
                Err(ExchangeError::Unsent(_)) => {}
                Err(fault) => return Err(fault),
                Ok((response, is_reusable)) => {
                    if is_reusable && !head.closes {
                        self.pool.give(connection);
                    }
                    return Ok(response);
                }
            }
        }
    }

    /// A connection that has rested and can still be used.
    async fn rested(&self) -> Option<Http1Connection<D::Stream>> {
        loop {
            let (mut connection, rested) = self.pool.take()?;
            if rested > BRIEF {
                yield_now().await;
            }
            if connection.is_reusable().await {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Http1Connection<D::Stream>, ExchangeError> {
        self.dial.connect().await.map(Http1Connection::new)
    }
}

/// Sends one request on a stream and returns the response. For the fuzz target `http_client`, which
/// compares it with hyper's client; it is not part of the API.
#[doc(hidden)]
pub async fn exchange_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &Request<Bytes>,
    limits: &Limits,
) -> Result<http::Response<Bytes>, CallError> {
    let head = RequestHead::new(request.uri(), request.headers());
    let mut draft = head.draft(request.body().len());
    draft.text.extend_from_slice(request.body());
    let reader = ResponseReader::new(limits.longest_frame()).with_headers();
    let mut request_bytes = head.finish(draft);
    let mut connection = Http1Connection::new(stream);
    let exchanged = connection.exchange(&mut request_bytes, reader, limits.stall_timeout).await;
    exchanged.map(|(response, _)| whole(response)).map_err(|fault| fault.at(request.uri()))
}
