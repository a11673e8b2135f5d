//! The wire access of the checker, written by hand: connections, and the codecs of each wire.
//!
//! Nothing here uses the `antiphon` library. A tool that checks or measures a server must not share
//! code with it: a fault in the shared code would stay invisible. `antiphon bench` uses this module too.

mod address;
pub mod codec;
mod raw_connection;
mod resolved_target;
mod socket;
mod tls;

pub use self::address::{Address, AddressProtocol, StreamFraming};
pub use self::raw_connection::{RawConnection, connect};
pub use self::resolved_target::{RemoteHosts, ResolvedTarget};
pub use self::socket::RawSocket;
pub use self::tls::TlsOptions;

pub(crate) use self::raw_connection::upgrade;
pub(crate) use self::resolved_target::TargetLocation;
pub(crate) use self::socket::ProcessGroup;
