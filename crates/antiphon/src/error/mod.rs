//! How a service's own errors become the wire's, and come back as what they were.
//!
//! `#[derive(RpcError)]` writes both ways for an enum; both are plain traits, so they can be written by
//! hand.

use std::borrow::Cow;

use antiphon_core::{Code, ErrorObject};

mod call;

pub use call::CallError;

/// The error of a foreign layer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error that a method of a contract may fail with.
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
    note = "derive `antiphon::RpcError` for it, or implement `antiphon::IntoErrorObject`"
)]
pub trait IntoErrorObject: Sized {
    /// What the caller is told.
    fn into_error_object(self) -> ErrorObject;

    /// What a description of the service says about it: the errors known beforehand.
    fn known_errors() -> Vec<KnownError> {
        Vec::new()
    }
}

/// The way back: an error that can be told from what came over the wire.
///
/// See [`CallError::as_error`].
pub trait FromErrorObject: Sized {
    /// The error that this is; `None` where it is none of them, or its `data` do not fit.
    fn from_error_object(error: &ErrorObject) -> Option<Self>;
}

/// One error that a method may answer with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownError {
    /// Which one.
    pub code: Code,
    /// One short sentence.
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
    /// The other side's error as an error of ours: one that derives `RpcError`, or implements
    /// [`FromErrorObject`].
    pub fn as_error<E: FromErrorObject>(&self) -> Option<E> {
        match self {
            Self::Rpc(error) => E::from_error_object(error),
            _ => None,
        }
    }
}
