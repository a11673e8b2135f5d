//! The default implementations of contract methods.

use std::future::{Ready, ready};

use antiphon::{Context, ErrorObject};

/// Returns the error -32601 for a request that is not implemented.
pub(crate) fn unsupported<P, R>(params: P, cx: Context) -> Ready<Result<R, ErrorObject>> {
    drop((params, cx));
    ready(Err(ErrorObject::method_not_found()))
}

/// Ignores a notification.
pub(crate) fn ignored<P>(params: P, cx: Context) -> Ready<()> {
    drop((params, cx));
    ready(())
}
