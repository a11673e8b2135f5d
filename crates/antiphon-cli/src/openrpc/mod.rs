//! The OpenRPC document of a server, and the commands that read it.

pub(crate) mod describe;
pub(crate) mod did_you_mean;
pub(crate) mod discovery;
pub(crate) mod list;
mod schema_text;
pub(crate) mod signature;
pub(crate) mod table;
pub(crate) mod validate;
