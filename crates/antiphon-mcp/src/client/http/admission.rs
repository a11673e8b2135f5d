//! How many requests of a legacy server run at once.
//!
//! A request holds its place until its response is posted, so neither a server that sends many nor one that takes no
//! response makes the client grow.

use std::sync::Arc;

use antiphon::{ErrorObject, Outcome};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::incoming::ServerRequest;
use crate::client::inbox::Inbox;

/// The most requests of a server that run at once.
const MAX_SERVED: usize = 64;
/// The most requests of a server that are refused at once. Further ones get no response.
const MAX_REFUSED: usize = 64;

/// The places for the requests of a server.
pub(super) struct ServerRequests {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
}

/// A request that has a place.
pub(super) struct Admitted {
    request: ServerRequest,
    is_served: bool,
    _place: OwnedSemaphorePermit,
}

impl Default for ServerRequests {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { served: places(MAX_SERVED), refused: places(MAX_REFUSED) }
    }
}

impl ServerRequests {
    /// Takes a place for a request; `None` if there is none.
    pub(super) fn admit(&self, request: ServerRequest) -> Option<Admitted> {
        let place = |places: &Arc<Semaphore>| places.clone().try_acquire_owned().ok();
        let (is_served, place) = match place(&self.served) {
            Some(place) => (true, Some(place)),
            None => (false, place(&self.refused)),
        };
        if place.is_none() {
            tracing::warn!(method = request.method, "too many requests of the server; one is lost");
        }
        Some(Admitted { request, is_served, _place: place? })
    }
}

impl Admitted {
    pub(super) fn request(&self) -> &ServerRequest {
        &self.request
    }

    /// Serves the request, or refuses it. A cancelled request has no response.
    pub(super) async fn outcome(&self, inbox: &Inbox) -> Option<Outcome> {
        let ServerRequest { id, method, params } = &self.request;
        match self.is_served {
            true => inbox.request(id, method, params.as_ref()).await,
            false => {
                Some(Err(ErrorObject::new(-32009, "too many requests of the server are running")))
            }
        }
    }
}
