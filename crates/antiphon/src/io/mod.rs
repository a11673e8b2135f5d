//! Bytes in and out: buffers, the buffer pool, TLS streams, stall detection, and the lingering close.
//!
//! Nothing here knows JSON-RPC, messages or endpoints.

pub(crate) mod buffer_pool;
#[cfg(any(feature = "http", feature = "ws", feature = "tls"))]
pub(crate) mod linger;
mod meter;
#[cfg(feature = "http")]
mod metered;
pub(crate) mod read_buffer;
pub(crate) mod stall;
#[cfg(feature = "http")]
pub(crate) mod stall_timer;
#[cfg(feature = "tls")]
pub mod tls;
mod wake_gated;
pub(crate) mod write_buffer;

pub(crate) use meter::Meter;
#[cfg(feature = "http")]
pub(crate) use metered::Metered;
pub(crate) use wake_gated::WakeGated;
