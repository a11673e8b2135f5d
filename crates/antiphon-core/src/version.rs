//! The versions of JSON-RPC, and the choice of versions that a decoder accepts.
//!
//! This module does not decode: see [`legacy`](crate::legacy).

use crate::id::{Id, OtherId};
use crate::json::RawJson;

/// A version of JSON-RPC.
///
/// ```
/// use antiphon_core::{Id, Version};
///
/// // The id carries the version from a request to its response.
/// assert_eq!(Id::from(7).version(), Version::V2);
/// assert_eq!(Version::default(), Version::V2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// JSON-RPC 1.0, and 1.1, which only adds a member `version`.
    ///
    /// In a call, `jsonrpc` is absent, null or "1.0". A response has both `result` and `error`, and one of them is
    /// null.
    V1,
    /// JSON-RPC 2.0.
    #[default]
    V2,
}

/// The versions of JSON-RPC that a decoder accepts. A batch may mix versions.
///
/// ```
/// use antiphon_core::{Message, Payload, Rules, Version, Versions, decode};
///
/// let frame = br#"{"method":"getblockcount","params":null,"id":[1]}"#[..].into();
/// assert!(matches!(decode(&frame, &Rules::default()), Payload::One(Err(_))));
/// let rules = Rules { versions: Versions::Bitcoin, null_params: true, ..Rules::default() };
/// let Payload::One(Ok(Message::Request(request))) = decode(&frame, &rules) else { panic!() };
/// assert_eq!((request.id.as_str(), request.id.version()), ("[1]", Version::V1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Versions {
    /// Only 2.0.
    #[default]
    V2,
    /// 1.0 and 2.0. The id of a 1.0 call is any JSON value; if it is null or absent, the call is a notification. A
    /// response may have both `result` and a null `error`. An error may be any JSON value.
    V1AndV2,
    /// 1.0 and 2.0 with the rules of Bitcoin nodes. Every 1.0 call is a request, even without an id. In both versions,
    /// an id may be any JSON value. The decoder accepts an empty batch.
    Bitcoin,
}

impl Versions {
    /// Returns the id in the response to a message whose version and id cannot be read. Such a message counts as 1.0
    /// unless only 2.0 is accepted.
    pub fn unreadable_id(self) -> Id {
        match self {
            Self::V2 => Id::Null,
            Self::V1AndV2 | Self::Bitcoin => OtherId::id(Version::V1, Some(RawJson::NULL)),
        }
    }
}
