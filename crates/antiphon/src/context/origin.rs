//! The source of a call, and the way back to its caller.

use std::sync::Arc;

use bytes::Bytes;

use crate::BoxFuture;
use crate::call::{CallError, Peer};
use crate::connection::Connection;
use crate::dialect::Dialect;

/// The source of a call.
#[derive(Clone)]
pub(crate) enum Origin {
    /// A duplex connection. Its peer can be called back.
    Peer(Peer),
    /// One request of a transport that cannot call back. A [`WayBack`] may carry notifications.
    Request(Arc<RequestOrigin>),
}

/// The facts of one request that came without a duplex connection.
pub(crate) struct RequestOrigin {
    connection: Connection,
    way_back: Option<Box<dyn WayBack>>,
}

/// Carries notifications to the caller of one request before its response, such as an event stream.
pub(crate) trait WayBack: Send + Sync {
    /// The dialect of the caller. It defines how progress is reported.
    fn dialect(&self) -> Option<&Dialect>;

    /// Sends an encoded message to the caller of this request. Waits while the queue is full.
    fn send<'a>(
        &'a self,
        message: Bytes,
        request: &'a Connection,
    ) -> BoxFuture<'a, Result<(), CallError>>;
}

impl Origin {
    /// A request without a way back.
    #[inline]
    pub(crate) fn request(connection: Connection) -> Self {
        Self::Request(Arc::new(RequestOrigin { connection, way_back: None }))
    }

    /// A request whose caller receives notifications before the response.
    #[cfg(feature = "http")]
    pub(crate) fn with_way_back(connection: Connection, way_back: impl WayBack + 'static) -> Self {
        let way_back = Some(Box::new(way_back) as Box<dyn WayBack>);
        Self::Request(Arc::new(RequestOrigin { connection, way_back }))
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Peer(peer) => Some(peer),
            Self::Request(_) => None,
        }
    }

    /// Whether both are the same connection or request.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Peer(one), Self::Peer(other)) => one.is(other),
            (Self::Request(one), Self::Request(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        match self {
            Self::Peer(peer) => peer.connection(),
            Self::Request(request) => &request.connection,
        }
    }

    fn way_back(&self) -> Option<&dyn WayBack> {
        match self {
            Self::Peer(_) => None,
            Self::Request(request) => request.way_back.as_deref(),
        }
    }

    pub(super) fn dialect(&self) -> Option<&Dialect> {
        match self {
            Self::Peer(peer) => peer.link().dialect(),
            Self::Request(_) => self.way_back()?.dialect(),
        }
    }

    /// Sends an encoded message to the caller.
    pub(super) async fn send(&self, message: Bytes) -> Result<(), CallError> {
        match (self, self.way_back()) {
            (Self::Peer(peer), _) => peer.link().send_encoded(message).await,
            (_, Some(way_back)) => way_back.send(message, self.connection()).await,
            (_, None) => Err(CallError::CannotCallBack(self.connection().transport)),
        }
    }
}
