//! Params to the arguments of a method, by position and by name at once.
//!
//! In one pass, as a derived struct would; but what is wrong is said in terms of the method's params.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::Error as Plain;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

/// The arguments of one method while they are being read: a place for each.
pub trait Arguments: Default {
    /// All of them, as a tuple.
    type Values: Send + 'static;
    /// Their names on the wire, in order.
    const NAMES: &'static [&'static str];
    /// Whether a param by another name is let pass: a dialect may put what is its own beside them.
    const IGNORES_UNKNOWN: bool;

    /// Whether something was read for this place, and be it a null.
    fn has(&self, place: usize) -> bool;

    /// Whether this place is empty, and no default fills it.
    fn lacks(&self, place: usize) -> bool;

    /// Reads what belongs in this place.
    fn fill<'de, D: Deserializer<'de>>(&mut self, place: usize, from: D) -> Result<(), D::Error>;

    /// All arguments, once every place that has no default is filled.
    fn finish(self) -> Option<Self::Values>;
}

/// The params of a method.
pub struct Given<A: Arguments>(pub A::Values);

/// What was given, and for the rest its default, or what nothing makes: `None` where the type is an
/// `Option`.
fn complete<A: Arguments, E: Error>(mut arguments: A) -> Result<A::Values, E> {
    for (place, name) in A::NAMES.iter().enumerate() {
        if arguments.lacks(place) && arguments.fill(place, Nothing).is_err() {
            return Err(E::custom(format_args!("missing param `{name}`")));
        }
    }
    arguments.finish().ok_or_else(|| E::custom("missing params"))
}

impl<'de, A: Arguments> Deserialize<'de> for Given<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("params", A::NAMES, Reader::<A>(PhantomData)).map(Self)
    }
}

struct Reader<A>(PhantomData<A>);

impl<'de, A: Arguments> Visitor<'de> for Reader<A> {
    type Value = A::Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("params by position or by name")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut params: S) -> Result<A::Values, S::Error> {
        let mut arguments = A::default();
        for place in 0..A::NAMES.len() {
            if params.next_element_seed(Place { arguments: &mut arguments, place })?.is_none() {
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
        while let Some(place) = params.next_key_seed(Name::of::<A>())? {
            let Some(place) = place else {
                params.next_value::<IgnoredAny>()?;
                continue;
            };
            if arguments.has(place) {
                let name = A::NAMES.get(place).copied().unwrap_or_default();
                return Err(Error::custom(format_args!("param `{name}` is given twice")));
            }
            params.next_value_seed(Place { arguments: &mut arguments, place })?;
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

/// Names in words.
fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One argument to be read.
struct Place<'a, A> {
    arguments: &'a mut A,
    place: usize,
}

impl<'de, A: Arguments> DeserializeSeed<'de> for Place<'_, A> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.arguments.fill(self.place, from)
    }
}

/// The place of a param by its name; none of one that is let pass.
struct Name {
    names: &'static [&'static str],
    ignores_unknown: bool,
}

impl Name {
    fn of<A: Arguments>() -> Self {
        Self { names: A::NAMES, ignores_unknown: A::IGNORES_UNKNOWN }
    }
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a param")
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<Self::Value, E> {
        let place = self.names.iter().position(|name| *name == given);
        if place.is_some() || self.ignores_unknown {
            return Ok(place);
        }
        // The name is the peer's, and as long as it likes.
        let given: String = given.chars().take(64).collect();
        Err(E::custom(match self.names {
            [] => format!("unknown param `{given}`: the method takes none"),
            names => format!("unknown param `{given}`: the method takes {}", listed(names)),
        }))
    }
}

/// Whether the type makes something of nothing.
#[cfg(feature = "openrpc")]
pub(super) fn is_optional<'de, T: Deserialize<'de>>() -> bool {
    T::deserialize(Nothing).is_ok()
}

/// What is read where nothing was given: only an `Option` can be made of it.
struct Nothing;

impl<'de> Deserializer<'de> for Nothing {
    type Error = Plain;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Plain> {
        Err(Error::invalid_type(Unexpected::Unit, &visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Plain> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
