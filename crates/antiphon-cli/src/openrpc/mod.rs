//! What the other side says about itself, and what can be done with it.

pub(crate) mod check;
pub(crate) mod describe;
pub(crate) mod discovery;
pub(crate) mod list;
mod nearest;
mod shape;
mod signature;
pub(crate) mod suggest;
mod table;
