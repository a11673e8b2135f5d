//! Autoref specialization: generated code that depends on the traits that a type implements.
//!
//! `(&Probe::<T>::new()).read(..)` resolves to `Readable` if `T` meets its bounds. Otherwise method
//! resolution takes one more reference and finds `Unreadable`. So a contract also works with types that
//! do not implement these traits. It only works where the concrete type is known, as in code that a macro
//! generates.

use std::marker::PhantomData;

use antiphon_core::RawJson;
use serde::de::DeserializeOwned;

/// Stands for a value of the type `T` in method resolution.
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// Creates the probe of this type.
    #[expect(clippy::new_without_default, reason = "only macros create one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// Implemented for types that deserialize.
pub trait Readable<T> {
    /// The value, if the JSON is valid for the type.
    fn read(&self, json: Option<&RawJson>) -> Option<T>;
}

impl<T: DeserializeOwned> Readable<T> for Probe<T> {
    fn read(&self, json: Option<&RawJson>) -> Option<T> {
        json.unwrap_or(&RawJson::NULL).decode().ok()
    }
}

/// Implemented for all other types.
pub trait Unreadable<T> {
    /// Always `None`.
    fn read(&self, json: Option<&RawJson>) -> Option<T>;
}

impl<T> Unreadable<T> for &Probe<T> {
    fn read(&self, _: Option<&RawJson>) -> Option<T> {
        None
    }
}

#[cfg(feature = "openrpc")]
pub use describe::{
    Describable, MaybeOptional, NeverOptional, Undescribable, Unwritable, WithKnownErrors,
    WithoutKnownErrors, Writable,
};

/// The properties of a type that a description uses.
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

    /// Implemented for types with a schema.
    pub trait Describable {
        /// The schema, or a reference to it.
        fn schema(&self, generator: &mut Generator) -> Value;
        /// The schema, never a reference to it.
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

    /// Implemented for all other types.
    pub trait Undescribable {
        /// The schema that allows any value.
        fn schema(&self, generator: &mut Generator) -> Value;
        /// The schema that allows any value.
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

    /// Implemented for types that serialize.
    pub trait Writable<T> {
        /// The value as JSON.
        fn write(&self, value: T) -> Option<Value>;
    }

    impl<T: Serialize> Writable<T> for Probe<T> {
        fn write(&self, value: T) -> Option<Value> {
            serde_json::to_value(value).ok()
        }
    }

    /// Implemented for all other types.
    pub trait Unwritable<T> {
        /// No JSON.
        fn write(&self, value: T) -> Option<Value>;
    }

    impl<T> Unwritable<T> for &Probe<T> {
        fn write(&self, _: T) -> Option<Value> {
            None
        }
    }
    /// Implemented for types that deserialize.
    pub trait MaybeOptional {
        /// Whether the type deserializes from a missing value.
        fn is_optional(&self) -> bool;
    }

    impl<T: DeserializeOwned> MaybeOptional for Probe<T> {
        fn is_optional(&self) -> bool {
            is_optional::<T>()
        }
    }

    /// Implemented for all other types.
    pub trait NeverOptional {
        /// Always false.
        fn is_optional(&self) -> bool;
    }

    impl<T> NeverOptional for &Probe<T> {
        fn is_optional(&self) -> bool {
            false
        }
    }

    /// Implemented for a `Result` whose error type lists its known errors.
    pub trait WithKnownErrors {
        /// The errors that the type declares.
        fn errors(&self) -> Vec<KnownError>;
    }

    impl<T, E: IntoErrorObject> WithKnownErrors for Probe<Result<T, E>> {
        fn errors(&self) -> Vec<KnownError> {
            E::known_errors()
        }
    }

    /// Implemented for all other types.
    pub trait WithoutKnownErrors {
        /// No errors.
        fn errors(&self) -> Vec<KnownError>;
    }

    impl<T> WithoutKnownErrors for &Probe<T> {
        fn errors(&self) -> Vec<KnownError> {
            Vec::new()
        }
    }
}
