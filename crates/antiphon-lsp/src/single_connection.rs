//! The handler of a program that has exactly one connection: a server of one editor, and a session.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon::{Handler, Peer, PerConnection, Router};

/// Returns a handler that creates the handler of the first connection. Any other connection has no methods.
pub(crate) fn single_connection<H: Handler>(
    make: impl FnOnce(Peer) -> H + Send + 'static,
) -> impl Handler {
    let make = Mutex::new(Some(make));
    PerConnection::new(move |_: &_, peer| -> Arc<dyn Handler> {
        // No code panics while it holds the lock.
        let make = make.lock().unwrap_or_else(PoisonError::into_inner).take();
        match make {
            Some(make) => Arc::new(make(peer)),
            None => Arc::new(Router::new()),
        }
    })
}
