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
use tokio::task::yield_now;

use super::connection::Connection;
use super::dial::Dial;
use super::fault::Fault;
use super::pool::Pool;
use super::request::{Draft, RequestHead};
use super::response::{Reader, Response};
use crate::transport::http::listener::KEEP_ALIVE;

/// What a connection may rest without the runtime being asked first what has come meanwhile.
const BRIEF: Duration = Duration::from_millis(1);

pub(super) struct Http1<D: Dial> {
    dial: D,
    head: RequestHead,
    pool: Arc<Pool<Connection<D::Stream>>>,
    limit: usize,
    stall: Duration,
}

impl<D: Dial> Http1<D> {
    pub(super) fn new(dial: D, uri: &Uri, headers: &HeaderMap, limits: &Limits) -> Self {
        Self {
            dial,
            head: RequestHead::new(uri, headers),
            pool: Pool::new(limits.idle_timeout.unwrap_or(KEEP_ALIVE)),
            limit: limits.longest_frame(),
            stall: limits.stall_timeout,
        }
    }

    pub(super) fn draft(&self, message: usize) -> Draft {
        self.head.draft(message)
    }

    pub(super) async fn post(&self, draft: Draft) -> Result<Response, Fault> {
        self.exchange(draft, || Reader::new(self.limit)).await
    }

    /// The same for a request that says all by itself, with the headers of its answer.
    pub(super) async fn post_whole(&self, request: &Request<Bytes>) -> Result<Response, Fault> {
        let head = RequestHead::new(request.uri(), request.headers());
        let mut draft = head.own_draft(request.body().len(), &HeaderMap::new());
        draft.text.extend_from_slice(request.body());
        self.exchange(draft, || Reader::new(self.limit).with_headers()).await
    }

    async fn exchange(
        &self,
        mut draft: Draft,
        reader: impl Fn() -> Reader,
    ) -> Result<Response, Fault> {
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
                Err(Fault::Unsent(_)) => {}
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
    async fn rested(&self) -> Option<Connection<D::Stream>> {
        loop {
            let (mut connection, rested) = self.pool.take()?;
            if rested > BRIEF {
                yield_now().await;
            }
            if connection.is_quiet().await {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Connection<D::Stream>, Fault> {
        self.dial.dial().await.map(Connection::new)
    }
}
