//! Connections without the library: bytes that are written and read by hand.
//!
//! What measures or judges a server must not share its code: a fault on both sides would be seen by
//! nobody.

pub(crate) mod codec;
pub(crate) mod link;
pub(crate) mod socket;
pub(crate) mod target;
