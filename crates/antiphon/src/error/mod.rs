//! Conversion between the errors of an application and error objects on the wire.
//!
//! `#[derive(RpcError)]` implements both directions for an enum. Both are plain traits, so they can also
//! be implemented by hand.

use std::borrow::Cow;

use antiphon_core::{Code, ErrorObject};

mod call;
mod cause;
mod close_reason;
mod http_status;
mod spawn;
mod unreadable;

pub use antiphon_core::ErrorChain;
pub use call::CallError;
pub use cause::Cause;
pub use close_reason::CloseReason;
pub use http_status::HttpStatusError;
pub use spawn::SpawnError;

/// The error of a layer from another crate.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error type for the methods of a contract.
///
/// ```
/// use antiphon::{ErrorObject, IntoErrorObject};
///
/// struct OutOfTea { cups: u32 }
///
/// impl IntoErrorObject for OutOfTea {
///     fn into_error_object(self) -> ErrorObject {
///         ErrorObject::new(-32050, "out of tea").with_data(&self.cups)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a method",
    note = "derive `antiphon::RpcError` for your own type, or return `ErrorObject` and convert with \
            `.map_err(ErrorObject::internal)`"
)]
pub trait IntoErrorObject: Sized {
    /// Converts the error into the error object that the caller receives.
    fn into_error_object(self) -> ErrorObject;

    /// The known errors of this type, for the description of the service.
    fn known_errors() -> Vec<KnownError> {
        Vec::new()
    }
}

/// An error type that can be recovered from an error object. See [`CallError::as_error`].
///
/// ```
/// use antiphon::{CallError, Code, ErrorObject, FromErrorObject};
///
/// #[derive(Debug, PartialEq)]
/// struct Unauthorized;
///
/// impl FromErrorObject for Unauthorized {
///     fn from_error_object(error: &ErrorObject) -> Option<Self> {
///         (error.code == Code::UNAUTHORIZED).then_some(Self)
///     }
/// }
///
/// let error = CallError::Rpc(ErrorObject::unauthorized());
/// assert_eq!(error.as_error(), Some(Unauthorized));
/// ```
pub trait FromErrorObject: Sized {
    /// Converts the error object. Returns `None` if the code is unknown or `data` does not match.
    fn from_error_object(error: &ErrorObject) -> Option<Self>;
}

/// A known error of a method.
///
/// ```
/// use antiphon::{Code, KnownError};
///
/// let overflow = KnownError { code: Code(-32050), message: "the result is out of range".into() };
/// # drop(overflow);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownError {
    /// The error code.
    pub code: Code,
    /// A short message.
    pub message: Cow<'static, str>,
}

impl IntoErrorObject for ErrorObject {
    fn into_error_object(self) -> ErrorObject {
        self
    }
}

impl IntoErrorObject for CallError {
    fn into_error_object(self) -> ErrorObject {
        self.into()
    }
}

/// For a method that cannot fail.
impl IntoErrorObject for std::convert::Infallible {
    fn into_error_object(self) -> ErrorObject {
        match self {}
    }
}

impl FromErrorObject for ErrorObject {
    fn from_error_object(error: &ErrorObject) -> Option<Self> {
        Some(error.clone())
    }
}

impl FromErrorObject for CallError {
    fn from_error_object(error: &ErrorObject) -> Option<Self> {
        Some(Self::Rpc(error.clone()))
    }
}

impl CallError {
    /// Converts an error response of the peer into an application error, which derives `RpcError` or
    /// implements [`FromErrorObject`].
    pub fn as_error<E: FromErrorObject>(&self) -> Option<E> {
        match self {
            Self::Rpc(error) => E::from_error_object(error),
            _ => None,
        }
    }
}
