//! Reads params, by position or by name, into the arguments of a method.
//!
//! The params are read in one pass, as by a derived struct, but the errors refer to the params of the
//! method.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::Error as PlainError;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

/// The arguments of one method while they are being read, each with an index.
pub trait Arguments: Default {
    /// All arguments, as a tuple.
    type Values: Send + 'static;
    /// Their names on the wire, in order.
    const NAMES: &'static [&'static str];
    /// Whether unknown params are ignored. A dialect may add params of its own.
    const IGNORES_UNKNOWN: bool;

    /// Whether a value was read for this argument, even `null`.
    fn has(&self, index: usize) -> bool;

    /// Whether this argument has neither a value nor a default.
    fn lacks(&self, index: usize) -> bool;

    /// Reads the value of this argument.
    fn fill<'de, D: Deserializer<'de>>(&mut self, index: usize, from: D) -> Result<(), D::Error>;

    /// Returns all arguments, once every argument without a default has a value.
    fn finish(self) -> Option<Self::Values>;
}

/// The params of a method.
pub struct MethodParams<A: Arguments>(pub A::Values);

/// Returns the arguments. A missing one gets its default, or `None` if its type is an `Option`.
fn complete<A: Arguments, E: Error>(mut arguments: A) -> Result<A::Values, E> {
    for (index, name) in A::NAMES.iter().enumerate() {
        if arguments.lacks(index) && arguments.fill(index, AbsentArgument).is_err() {
            return Err(E::custom(format_args!("missing param `{name}`")));
        }
    }
    arguments.finish().ok_or_else(|| {
        E::custom(format_args!("missing params: the method takes {}", listed(A::NAMES)))
    })
}

impl<'de, A: Arguments> Deserialize<'de> for MethodParams<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_struct("params", A::NAMES, ArgumentsVisitor::<A>(PhantomData))
            .map(Self)
    }
}

struct ArgumentsVisitor<A>(PhantomData<A>);

impl<'de, A: Arguments> Visitor<'de> for ArgumentsVisitor<A> {
    type Value = A::Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("params by position or by name")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut params: S) -> Result<A::Values, S::Error> {
        let mut arguments = A::default();
        for index in 0..A::NAMES.len() {
            if params
                .next_element_seed(ArgumentSeed { arguments: &mut arguments, index })?
                .is_none()
            {
                return complete(arguments);
            }
        }
        match params.next_element::<IgnoredAny>()? {
            None => complete(arguments),
            Some(_) => Err(too_many(A::NAMES)),
        }
    }

    fn visit_map<M: MapAccess<'de>>(self, mut params: M) -> Result<A::Values, M::Error> {
        let mut arguments = A::default();
        while let Some(index) = params.next_key_seed(NameSeed::of::<A>())? {
            let Some(index) = index else {
                params.next_value::<IgnoredAny>()?;
                continue;
            };
            if arguments.has(index) {
                let name = A::NAMES.get(index).copied().unwrap_or_default();
                return Err(Error::custom(format_args!("param `{name}` is given twice")));
            }
            params.next_value_seed(ArgumentSeed { arguments: &mut arguments, index })?;
        }
        complete(arguments)
    }
}

fn too_many<E: Error>(names: &[&str]) -> E {
    E::custom(match names {
        [] => "the method takes no params".to_owned(),
        names => format!("more params than the method takes: {}", listed(names)),
    })
}

/// Formats names for an error message.
fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reads one argument.
struct ArgumentSeed<'a, A> {
    arguments: &'a mut A,
    index: usize,
}

impl<'de, A: Arguments> DeserializeSeed<'de> for ArgumentSeed<'_, A> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.arguments.fill(self.index, from)
    }
}

/// Finds the index of a param by its name; `None` for a param that is ignored.
struct NameSeed {
    names: &'static [&'static str],
    ignores_unknown: bool,
}

impl NameSeed {
    fn of<A: Arguments>() -> Self {
        Self { names: A::NAMES, ignores_unknown: A::IGNORES_UNKNOWN }
    }
}

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a param")
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<Self::Value, E> {
        let index = self.names.iter().position(|name| *name == given);
        if index.is_some() || self.ignores_unknown {
            return Ok(index);
        }
        // The peer chooses the name, so its length is limited here.
        let given: String = given.chars().take(64).collect();
        Err(E::custom(match self.names {
            [] => format!("unknown param `{given}`: the method takes no params"),
            names => format!("unknown param `{given}`: the method takes {}", listed(names)),
        }))
    }
}

/// Whether the type deserializes from a missing value.
#[cfg(feature = "openrpc")]
pub(super) fn is_optional<'de, T: Deserialize<'de>>() -> bool {
    T::deserialize(AbsentArgument).is_ok()
}

/// A missing value: only an `Option` deserializes from it.
struct AbsentArgument;

impl<'de> Deserializer<'de> for AbsentArgument {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        Err(Error::invalid_type(Unexpected::Unit, &visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
