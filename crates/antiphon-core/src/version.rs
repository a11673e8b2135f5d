//! The versions of JSON-RPC, and which of them a decoder reads.
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
    /// JSON-RPC 1.0, and 1.1, which differs only in a member `version`.
    ///
    /// A call has no `jsonrpc`, or null or "1.0" in it. A response has both `result` and `error`, and one of
    /// them is null.
    V1,
    /// JSON-RPC 2.0.
    #[default]
    V2,
}

/// The versions of JSON-RPC that a decoder reads. A batch may mix versions.
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
    /// 1.0 and 2.0. A call of 1.0 whose id is null or absent is a notification; any other JSON value is an id
    /// there. A response may have a null `error` beside its `result`, and an error of any kind.
    V1AndV2,
    /// 1.0 and 2.0 with the rules of Bitcoin nodes: every call of 1.0 is a request, also without an id; any
    /// JSON value is an id, also in 2.0; an empty batch is a batch.
    Bitcoin,
}

impl Versions {
    /// The id in the response to a message whose version and id cannot be read. It counts as 1.0, unless
    /// only 2.0 is read.
    pub fn unreadable_id(self) -> Id {
        match self {
            Self::V2 => Id::Null,
            Self::V1AndV2 | Self::Bitcoin => OtherId::id(Version::V1, Some(RawJson::NULL)),
        }
    }
}
