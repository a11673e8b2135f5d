//! The bodies of methods that an implementation does not override.

use std::future::{Ready, ready};

use antiphon::{Context, ErrorObject};

/// The answer of a method that is not implemented: -32601.
pub(crate) fn unsupported<P, R>(params: P, cx: Context) -> Ready<Result<R, ErrorObject>> {
    drop((params, cx));
    ready(Err(ErrorObject::method_not_found()))
}

/// Ignores a notification.
pub(crate) fn ignored<P>(params: P, cx: Context) -> Ready<()> {
    drop((params, cx));
    ready(())
}
