//! The errors that the protocol adds to those of JSON-RPC.
//!
//! ```
//! use antiphon::ErrorObject;
//! use antiphon_lsp::error;
//!
//! fn check(version: i32, current: i32) -> Result<(), ErrorObject> {
//!     (version == current).then_some(()).ok_or_else(error::content_modified)
//! }
//! assert_eq!(check(1, 2).unwrap_err().code, -32801);
//! ```

use std::borrow::Cow;

use antiphon::ErrorObject;

use crate::types::{ErrorCodes, LspErrorCodes};

/// Server not initialized (-32002): a request arrived before the response to `initialize`.
/// [`LanguageService`](crate::LanguageService) returns it.
pub fn server_not_initialized() -> ErrorObject {
    ErrorObject::new(code(ErrorCodes::ServerNotInitialized), "Server not initialized")
}

/// Content modified (-32801): the document has changed, so the result would be outdated. The editor may repeat the
/// request.
pub fn content_modified() -> ErrorObject {
    ErrorObject::new(code(LspErrorCodes::ContentModified), "Content modified")
}

/// Request cancelled (-32800). The library already returns it for requests that the editor cancels.
pub fn request_cancelled() -> ErrorObject {
    ErrorObject::new(code(LspErrorCodes::RequestCancelled), "Request cancelled")
}

/// Server cancelled (-32802): the server has cancelled the request. The protocol allows it only for some requests, such
/// as `textDocument/diagnostic`, where `data` is
/// [`DiagnosticServerCancellationData`](crate::types::DiagnosticServerCancellationData).
pub fn server_cancelled() -> ErrorObject {
    ErrorObject::new(code(LspErrorCodes::ServerCancelled), "Server cancelled")
}

/// Request failed (-32803): the request is valid but failed. The editor shows the message to the user.
pub fn request_failed(message: impl Into<Cow<'static, str>>) -> ErrorObject {
    ErrorObject::new(code(LspErrorCodes::RequestFailed), message)
}

fn code(code: impl Into<i32>) -> i64 {
    i64::from(code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_code() {
        let codes = [
            server_not_initialized(),
            content_modified(),
            request_cancelled(),
            server_cancelled(),
            request_failed("no such symbol"),
        ]
        .map(|error| error.code.0);
        assert_eq!(codes, [-32002, -32801, -32800, -32802, -32803]);
    }
}
