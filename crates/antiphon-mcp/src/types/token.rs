//! Tokens that the sender chooses and the receiver sends back: progress tokens and request ids.

use std::fmt;

use antiphon::{Id, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::Number;

macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum $name {
            /// A String.
            String(String),
            /// A Number, as it was received.
            Number(Number),
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::String(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::String(text)
            }
        }

        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                Self::Number(number.into())
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self::Number(number.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::String(text) => f.write_str(text),
                    Self::Number(number) => number.fmt(f),
                }
            }
        }
    };
}

token! {
    /// Refers progress notifications to their call. A String and a Number are never equal.
    ProgressToken
}

token! {
    /// The id of a request, in a member such as `requestId`. A String and a Number are never equal.
    RequestId
}

impl RequestId {
    /// The id of a JSON-RPC message; `None` for an id that the protocol does not allow, such as null.
    pub fn of(id: &Id) -> Option<Self> {
        match id {
            Id::Number(_) | Id::String(_) => serde_json::from_str(id.as_str()).ok(),
            Id::Null | Id::Other(_) => None,
        }
    }

    /// This id as the id of a JSON-RPC message.
    pub fn to_id(&self) -> Id {
        RawJson::encode(self).ok().and_then(Id::from_json).unwrap_or(Id::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_kind_and_text() {
        for json in ["\"7\"", "7", "-1", "18446744073709551615", "\"\"", "\"a\\nb\""] {
            let token: ProgressToken = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&token).unwrap(), json);
            let id: RequestId = serde_json::from_str(json).unwrap();
            assert_eq!(id.to_id().as_str(), json);
            assert_eq!(RequestId::of(&id.to_id()), Some(id));
        }
        for json in ["null", "true", "{}", "[]"] {
            assert!(serde_json::from_str::<ProgressToken>(json).is_err(), "{json}");
        }
        assert_ne!(ProgressToken::from("7"), ProgressToken::from(7_u64));
        assert_eq!(RequestId::of(&Id::Null), None);
    }
}
