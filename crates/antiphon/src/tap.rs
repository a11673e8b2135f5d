//! Sees every message as it is on the wire.

use std::sync::Arc;

/// Sees every message as it is on the wire.
pub(crate) type Tap = Arc<dyn Fn(Direction, &[u8]) + Send + Sync>;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From us.
    Sent,
    /// To us.
    Received,
}
