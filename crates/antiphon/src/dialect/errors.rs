//! The codes and messages of the errors that the library creates.
//!
//! A library error is recognized by its code and message. An application error is changed only if it has the code and
//! the message of a library error, for example `ErrorObject::method_not_found()`.

use std::borrow::Cow;

use antiphon_core::{Code, ErrorObject};

/// The codes and messages of library errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorStyle {
    /// Unchanged.
    #[default]
    Plain,
    /// Those of Ethereum nodes. EIP-1474 assigns other meanings to some of the library's codes: -32006 means an
    /// unsupported version of JSON-RPC.
    Ethereum,
    /// Those of Bitcoin Core: the error of an invalid message has the reason as its `message`, and no `data`.
    Bitcoin,
}

/// A library error and its translation: code and message in the library, code and message in Ethereum nodes.
type Translation = (Code, &'static str, i64, &'static str);

/// Codes and messages follow geth if it has the error. Otherwise, the code is that of EIP-1474.
const ETHEREUM: [Translation; 5] = [
    (Code::TIMED_OUT, "Request timed out", -32002, "request timed out"),
    (Code::RESPONSE_TOO_LARGE, "Response too large", -32003, "response too large"),
    (Code::BATCH_TOO_LARGE, "Batch too large", -32600, "batch too large"),
    (Code::RATE_LIMITED, "Rate limit exceeded", LIMIT_EXCEEDED, "rate limit exceeded"),
    (
        Code::TOO_MANY_SUBSCRIPTIONS,
        "Too many subscriptions",
        LIMIT_EXCEEDED,
        "too many subscriptions",
    ),
];

/// "Limit exceeded" in EIP-1474. Clients such as viem wait and retry.
const LIMIT_EXCEEDED: i64 = -32005;

impl ErrorStyle {
    /// Returns the error in this style, with its `data` unchanged.
    pub(crate) fn apply(self, error: ErrorObject) -> ErrorObject {
        match self {
            Self::Plain => error,
            Self::Ethereum => ethereum(error),
            Self::Bitcoin => bitcoin(error),
        }
    }

    /// Returns whether this style changes errors of calls. The Bitcoin style changes only the errors of invalid
    /// messages, which are not calls.
    pub(crate) fn changes_calls(self) -> bool {
        self == Self::Ethereum
    }

    /// Like [`apply`](Self::apply), for the outcome of a call to `method`.
    pub(crate) fn apply_to_call(self, method: &str, error: ErrorObject) -> ErrorObject {
        if !self.changes_calls() {
            return error;
        }
        // ethers detects an unknown method by this text.
        if error == ErrorObject::method_not_found() {
            let message = format!("the method {method} does not exist/is not available").into();
            return ErrorObject { message, ..error };
        }
        ethereum(error)
    }

    /// Returns the error for a subscribe call over HTTP, which has no connection for the items. `None` if this style
    /// does not define one.
    pub(crate) fn without_connection(self, method: &str) -> Option<ErrorObject> {
        let is_subscribe = self == Self::Ethereum && method.ends_with("_subscribe");
        let error = || ErrorObject::new(Code::METHOD_NOT_FOUND.0, "notifications not supported");
        is_subscribe.then(error)
    }
}

fn ethereum(error: ErrorObject) -> ErrorObject {
    let is_it =
        |&&(code, message, ..): &&Translation| (error.code, &*error.message) == (code, message);
    match ETHEREUM.iter().find(is_it) {
        Some(&(_, _, code, message)) => {
            ErrorObject { code: Code(code), message: Cow::Borrowed(message), ..error }
        }
        None => error,
    }
}

/// The start of the library's reason for a message that is another JSON value.
const NOT_AN_OBJECT: &str = "a message must be an Object";

/// Pairs of a prefix of the library's reason and Bitcoin Core's message. A reason without a matching prefix becomes
/// the message itself.
const BITCOIN: [(&str, &str); 7] = [
    (NOT_AN_OBJECT, "Invalid Request object"),
    ("`method` is missing", "Missing method"),
    ("`jsonrpc` must be a String", "jsonrpc field must be a string"),
    ("`jsonrpc` must be \"1.0\"", "JSON-RPC version not supported"),
    ("`method` must be a String, found Null", "Missing method"),
    ("`method` must be a String", "Method must be a string"),
    ("`params` must be", "Params must be an array or object"),
];

fn bitcoin(error: ErrorObject) -> ErrorObject {
    let reason: Option<String> = error.data.as_ref().and_then(|data| data.decode().ok());
    let message = match (error.code, reason) {
        (Code::PARSE_ERROR, Some(reason)) if reason.starts_with(NOT_AN_OBJECT) => {
            Cow::Borrowed("Top-level object parse error")
        }
        (Code::PARSE_ERROR, _) => Cow::Borrowed("Parse error"),
        (Code::INVALID_REQUEST, Some(reason)) => {
            let known = BITCOIN.iter().find(|(start, _)| reason.starts_with(start));
            known.map_or(Cow::Owned(reason), |&(_, message)| Cow::Borrowed(message))
        }
        _ => return error,
    };
    ErrorObject { message, data: None, ..error }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_translation_matches_an_error_of_the_library() {
        let errors = [
            ErrorObject::timed_out(),
            ErrorObject::response_too_large(1),
            ErrorObject::batch_too_large(1),
            ErrorObject::rate_limited(Duration::ZERO),
            ErrorObject::too_many_subscriptions(1),
        ];
        for (error, (_, _, code, message)) in errors.into_iter().zip(ETHEREUM) {
            assert_eq!(ErrorStyle::Plain.apply(error.clone()), error);
            let translated = ErrorStyle::Ethereum.apply(error.clone());
            assert_eq!((translated.code.0, &*translated.message), (code, message));
            assert_eq!(translated.data, error.data);
        }
    }

    #[test]
    fn an_error_of_the_application_stays() {
        for error in [
            ErrorObject::new(-32006, "no such token"),
            ErrorObject::new(-32601, "the token is gone"),
            ErrorObject::method_not_found().with_data("its data"),
            ErrorObject::internal_error(),
        ] {
            assert_eq!(ErrorStyle::Ethereum.apply_to_call("m", error.clone()), error);
        }
    }
}
