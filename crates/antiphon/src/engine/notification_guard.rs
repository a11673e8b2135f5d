//! Detects calls that the handler of a notification makes to its own peer.
//!
//! While such a call is pending, requests may overtake the notification (contract 5). The call is
//! recognised by the thread that makes it, which is marked while the handler is polled. The handle that
//! the call uses says nothing: a handle may outlive the handler, and a handler may hold other handles.

use std::cell::Cell;

thread_local! {
    /// The connection whose notification handler is being polled on this thread.
    static POLLED: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// Restores the mark of the thread when it is dropped.
pub(crate) struct NotificationGuard {
    before: *const (),
}

/// Marks this thread as polling the handler of a notification of this connection.
pub(super) fn enter<T: ?Sized>(connection: *const T) -> NotificationGuard {
    NotificationGuard { before: POLLED.replace(connection.cast()) }
}

impl Drop for NotificationGuard {
    fn drop(&mut self) {
        POLLED.set(self.before);
    }
}

/// Whether this thread is polling the handler of a notification of this connection. The address is
/// compared and never dereferenced.
pub(crate) fn is_polling<T>(connection: &T) -> bool {
    std::ptr::addr_eq(POLLED.get(), connection)
}
