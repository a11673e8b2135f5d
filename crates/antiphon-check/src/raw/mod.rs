//! The wire access of the checker, written by hand: connections, and the codecs of each wire.
//!
//! Nothing here uses the `antiphon` library. A tool that checks or measures a server must not share
//! code with it: a fault in the shared code would stay invisible. `antiphon bench` uses this module too.

mod address;
pub mod codec;
mod connect;
mod socket;
mod target;
mod tls;

pub use self::address::{Address, AddressProtocol, StreamFraming};
pub use self::connect::{RawConnection, connect};
pub use self::socket::RawSocket;
pub use self::target::{RemoteHosts, Target};
pub use self::tls::TlsOptions;

pub(crate) use self::connect::upgrade;
pub(crate) use self::socket::ProcessGroup;
pub(crate) use self::target::TargetLocation;
