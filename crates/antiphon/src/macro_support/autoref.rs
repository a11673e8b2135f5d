//! Whether a type can do something, asked where the type is known.
//!
//! `(&Probe::<T>::new()).read(..)` finds `Readable` where `T` has what it asks for; else one more
//! reference is taken and `Unreadable` is found. So a contract demands nothing of a type that it can
//! do without.

use std::marker::PhantomData;

use antiphon_core::RawJson;
use serde::de::DeserializeOwned;

/// Stands for a value of the type.
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// One for this type.
    #[expect(clippy::new_without_default, reason = "only macros make one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// Of a type that can be read.
pub trait Readable<T> {
    /// The value, where the JSON is one.
    fn read(&self, json: Option<&RawJson>) -> Option<T>;
}

impl<T: DeserializeOwned> Readable<T> for Probe<T> {
    fn read(&self, json: Option<&RawJson>) -> Option<T> {
        json.unwrap_or(&RawJson::NULL).decode().ok()
    }
}

/// Of any other type.
pub trait Unreadable<T> {
    /// No value.
    fn read(&self, json: Option<&RawJson>) -> Option<T>;
}

impl<T> Unreadable<T> for &Probe<T> {
    fn read(&self, _: Option<&RawJson>) -> Option<T> {
        None
    }
}

#[cfg(feature = "openrpc")]
pub use describe::{
    Certain, Describable, Fallible, Omissible, Showable, Undescribable, Unfallible, Unshowable,
};

/// What a description asks of a type.
#[cfg(feature = "openrpc")]
mod describe {
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::super::arguments::is_optional;
    use super::Probe;
    use crate::error::{IntoErrorObject, KnownError};
    use crate::openrpc::Generator;

    /// Of a type with a schema.
    pub trait Describable {
        /// Its schema, or a reference to it.
        fn schema(&self, generator: &mut Generator) -> Value;
        /// Its schema, never a reference to it.
        fn inline(&self, generator: &mut Generator) -> Value;
    }

    impl<T: JsonSchema> Describable for Probe<T> {
        fn schema(&self, generator: &mut Generator) -> Value {
            generator.schema::<T>()
        }

        fn inline(&self, generator: &mut Generator) -> Value {
            generator.inline::<T>()
        }
    }

    /// Of any other type.
    pub trait Undescribable {
        /// Anything.
        fn schema(&self, generator: &mut Generator) -> Value;
        /// Anything.
        fn inline(&self, generator: &mut Generator) -> Value;
    }

    impl<T> Undescribable for &Probe<T> {
        fn schema(&self, _: &mut Generator) -> Value {
            Value::Bool(true)
        }

        fn inline(&self, _: &mut Generator) -> Value {
            Value::Bool(true)
        }
    }

    /// Of a type whose values can be written.
    pub trait Showable<T> {
        /// This value.
        fn show(&self, value: T) -> Option<Value>;
    }

    impl<T: Serialize> Showable<T> for Probe<T> {
        fn show(&self, value: T) -> Option<Value> {
            serde_json::to_value(value).ok()
        }
    }

    /// Of any other type.
    pub trait Unshowable<T> {
        /// Nothing.
        fn show(&self, value: T) -> Option<Value>;
    }

    impl<T> Unshowable<T> for &Probe<T> {
        fn show(&self, _: T) -> Option<Value> {
            None
        }
    }
    /// Of a type that can be read.
    pub trait Omissible {
        /// Whether it is read from nothing.
        fn is_optional(&self) -> bool;
    }

    impl<T: DeserializeOwned> Omissible for Probe<T> {
        fn is_optional(&self) -> bool {
            is_optional::<T>()
        }
    }

    /// Of any other type.
    pub trait Certain {
        /// It is not.
        fn is_optional(&self) -> bool;
    }

    impl<T> Certain for &Probe<T> {
        fn is_optional(&self) -> bool {
            false
        }
    }

    /// Of a result whose error can be told.
    pub trait Fallible {
        /// The errors that are known beforehand.
        fn errors(&self) -> Vec<KnownError>;
    }

    impl<T, E: IntoErrorObject> Fallible for Probe<Result<T, E>> {
        fn errors(&self) -> Vec<KnownError> {
            E::known_errors()
        }
    }

    /// Of any other type.
    pub trait Unfallible {
        /// None.
        fn errors(&self) -> Vec<KnownError>;
    }

    impl<T> Unfallible for &Probe<T> {
        fn errors(&self) -> Vec<KnownError> {
            Vec::new()
        }
    }
}
