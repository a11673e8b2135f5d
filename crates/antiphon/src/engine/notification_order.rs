//! Which calls are made by the handler of a notification?
//!
//! Such a call gives up its handler's place in the order while it waits (contract 5). It is told by
//! when it is made, and not by whose handle it is made through: a handle may outlive the handler, and
//! a handler may hold others.

use std::cell::Cell;

thread_local! {
    /// The connection whose notification is being polled on this thread.
    static POLLED: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// Marks the thread until it is dropped.
pub(crate) struct OrderGuard {
    before: *const (),
}

/// Marks this thread as polling the handler of a notification of this connection.
pub(super) fn keep<T: ?Sized>(connection: *const T) -> OrderGuard {
    OrderGuard { before: POLLED.replace(connection.cast()) }
}

impl Drop for OrderGuard {
    fn drop(&mut self) {
        POLLED.set(self.before);
    }
}

/// Whether a notification of this connection is being polled here. The address is only compared.
pub(crate) fn is_kept_by<T>(connection: &T) -> bool {
    std::ptr::addr_eq(POLLED.get(), connection)
}
