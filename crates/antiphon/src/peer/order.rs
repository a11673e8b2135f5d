//! Which calls are made by the handler of a notification?
//!
//! Such a call gives up its handler's place in the order while it waits (contract 5). It is told by
//! when it is made, and not by whose handle it is made through: a handle may outlive the handler, and
//! a handler may hold others.

use std::cell::Cell;

use super::Shared;

thread_local! {
    /// The connection whose notification is being polled on this thread.
    static POLLED: Cell<*const Shared> = const { Cell::new(std::ptr::null()) };
}

/// Marks the thread until it is dropped.
pub(super) struct Kept {
    before: *const Shared,
}

pub(super) fn keep(shared: &Shared) -> Kept {
    Kept { before: POLLED.replace(shared) }
}

impl Drop for Kept {
    fn drop(&mut self) {
        POLLED.set(self.before);
    }
}

/// Whether a notification of this connection is being polled here. The address is only compared.
pub(super) fn is_kept_by(shared: &Shared) -> bool {
    std::ptr::eq(POLLED.get(), shared)
}
