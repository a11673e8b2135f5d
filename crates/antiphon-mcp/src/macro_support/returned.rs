//! Autoref specialization: what a method returns becomes what a handler returns.
//!
//! `(&&&Returned::of(&value)).tool(value)` resolves to the first trait whose bounds the type meets: a `Result` with an
//! error that converts, a `Result` with an error that can be boxed (a text, or `anyhow::Error`), or any other value.
//! It only works where the concrete type is known, as in code that a macro generates.

use std::error::Error;
use std::marker::PhantomData;

use crate::{RequestError, ToolError};

type BoxedError = Box<dyn Error + Send + Sync>;

/// Stands for a value of the type `T` in method resolution.
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// Creates the stand-in for this value.
    pub const fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Implemented for results whose error becomes a [`ToolError`].
pub trait Failure<T, E> {
    /// Converts the error.
    fn tool(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: Into<ToolError>> Failure<T, E> for &&Returned<Result<T, E>> {
    fn tool(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(Into::into)
    }
}

/// Implemented for results whose error can be boxed.
pub trait BoxedFailure<T, E> {
    /// Converts the error.
    fn tool(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: Into<BoxedError>> BoxedFailure<T, E> for &Returned<Result<T, E>> {
    fn tool(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(|error| ToolError::of(&*error.into()))
    }
}

/// Implemented for all results of tools.
pub trait Plain<T> {
    /// Returns the value.
    fn tool(&self, value: T) -> T;
}

impl<T> Plain<T> for Returned<T> {
    fn tool(&self, value: T) -> T {
        value
    }
}

/// Implemented for results whose error becomes a [`RequestError`].
pub trait RequestFailure<T, E> {
    /// Converts the error of a resource.
    fn resource(&self, result: Result<T, E>) -> Result<T, RequestError>;

    /// Converts the error of a prompt.
    fn prompt(&self, result: Result<T, E>) -> Result<T, RequestError>;
}

impl<T, E: Into<RequestError>> RequestFailure<T, E> for &&Returned<Result<T, E>> {
    fn resource(&self, result: Result<T, E>) -> Result<T, RequestError> {
        result.map_err(Into::into)
    }

    fn prompt(&self, result: Result<T, E>) -> Result<T, RequestError> {
        result.map_err(Into::into)
    }
}

/// Implemented for results whose error can be boxed.
pub trait BoxedRequestFailure<T, E> {
    /// Converts the error of a resource.
    fn resource(&self, result: Result<T, E>) -> Result<T, RequestError>;

    /// Converts the error of a prompt.
    fn prompt(&self, result: Result<T, E>) -> Result<T, RequestError>;
}

impl<T, E: Into<BoxedError>> BoxedRequestFailure<T, E> for &Returned<Result<T, E>> {
    fn resource(&self, result: Result<T, E>) -> Result<T, RequestError> {
        result.map_err(|error| RequestError::of(&*error.into()))
    }

    fn prompt(&self, result: Result<T, E>) -> Result<T, RequestError> {
        result.map_err(|error| RequestError::of(&*error.into()))
    }
}

/// Implemented for all values.
pub trait Infallible<T> {
    /// Returns the content of a resource.
    fn resource(&self, value: T) -> Result<T, RequestError>;

    /// Returns the messages of a prompt.
    fn prompt(&self, value: T) -> Result<T, RequestError>;
}

impl<T> Infallible<T> for Returned<T> {
    fn resource(&self, value: T) -> Result<T, RequestError> {
        Ok(value)
    }

    fn prompt(&self, value: T) -> Result<T, RequestError> {
        Ok(value)
    }
}
