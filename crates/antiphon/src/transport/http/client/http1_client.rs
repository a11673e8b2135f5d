//! Exchanges over HTTP/1.1, each on a connection of its own.
//!
//! A request is sent again only if the server has certainly seen nothing of it: an idle connection was
//! found closed before a byte was sent. RFC 9110, section 9.2.2, allows no more, since a call may have
//! effects.
//!
//! Rejected: hyper's client. With its connection in a task, a call passes two channels and wakes two
//! tasks. With its connection polled by the call itself, it takes twice the instructions of this one and
//! makes a sixth fewer calls per second (`bench/NOTES.md`). The fuzz target `http_client` compares both.

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
use super::response::{ReceivedResponse, ResponseReader};
use crate::call::{CallError, deadline};
use crate::transport::http::listener::KEEP_ALIVE;

/// A connection idle for longer yields to the runtime before reuse, so that the runtime learns whether the
/// server closed it.
const BRIEF: Duration = Duration::from_millis(1);

pub(super) struct Http1<C: StreamConnector> {
    connector: C,
    head: RequestHead,
    pool: Arc<ConnectionPool<Http1Connection<C::Stream>>>,
    limit: usize,
    stall: Duration,
}

impl<C: StreamConnector> Http1<C> {
    pub(super) fn new(connector: C, uri: &Uri, headers: &HeaderMap, limits: &Limits) -> Self {
        Self {
            connector,
            head: RequestHead::new(uri, headers),
            pool: ConnectionPool::new(limits.idle_timeout.unwrap_or(KEEP_ALIVE)),
            limit: limits.longest_frame(),
            stall: limits.stall_timeout,
        }
    }

    pub(super) fn buffer(&self, message: usize) -> RequestBuffer {
        self.head.buffer(message)
    }

    pub(super) async fn post(
        &self,
        buffer: RequestBuffer,
    ) -> Result<ReceivedResponse, ExchangeError> {
        self.exchange(buffer, || ResponseReader::new(self.limit)).await
    }

    /// Like `post`, for a complete request. The response has its headers.
    pub(super) async fn post_whole(
        &self,
        request: &Request<Bytes>,
    ) -> Result<ReceivedResponse, ExchangeError> {
        let head = RequestHead::new(request.uri(), request.headers());
        let mut buffer = head.buffer_with(request.body().len(), &HeaderMap::new());
        buffer.bytes.extend_from_slice(request.body());
        self.exchange(buffer, || ResponseReader::new(self.limit).with_headers()).await
    }

    async fn exchange(
        &self,
        mut buffer: RequestBuffer,
        reader: impl Fn() -> ResponseReader,
    ) -> Result<ReceivedResponse, ExchangeError> {
        let own = buffer.overrides.take();
        let head = own.as_ref().and_then(|own| own.head.as_ref()).unwrap_or(&self.head);
        let mut request = head.finish(buffer);
        loop {
            let mut connection = match self.reusable().await {
                Some(connection) => connection,
                None => Box::pin(self.connect()).await?,
            };
            deadline::sent();
            match connection.exchange(&mut request, reader(), self.stall).await {
                // The server had closed this connection.
                Err(ExchangeError::Unsent(_)) => {}
                Err(fault) => return Err(fault),
                Ok((response, is_reusable)) => {
                    if is_reusable && !head.closes {
                        self.pool.put(connection);
                    }
                    return Ok(response);
                }
            }
        }
    }

    /// Takes an idle connection that can still be used.
    async fn reusable(&self) -> Option<Http1Connection<C::Stream>> {
        loop {
            let (mut connection, idle) = self.pool.take()?;
            if idle > BRIEF {
                yield_now().await;
            }
            if connection.is_reusable().await {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Http1Connection<C::Stream>, ExchangeError> {
        let connected = deadline::wait_to_send(self.connector.connect()).await;
        let late = |limit| ExchangeError::Unreachable(deadline::no_connection(limit, None));
        connected.map_err(late)?.map(Http1Connection::new)
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
    let mut buffer = head.buffer(request.body().len());
    buffer.bytes.extend_from_slice(request.body());
    let reader = ResponseReader::new(limits.longest_frame()).with_headers();
    let mut request_bytes = head.finish(buffer);
    let mut connection = Http1Connection::new(stream);
    let exchanged = connection.exchange(&mut request_bytes, reader, limits.stall_timeout).await;
    exchanged.map(|(response, _)| whole(response)).map_err(|fault| fault.at(request.uri()))
}
