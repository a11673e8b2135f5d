//! The numbers that the demonstration service calculates with.

use std::borrow::Cow;
use std::fmt;

use antiphon::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

/// A JSON Number to calculate with: exact where it is a whole one of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_add, |a, b| a + b)
    }

    pub(super) fn minus(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_sub, |a, b| a - b)
    }

    /// None where the result is out of range: never a panic, a wrapped number or an infinity.
    fn combine(
        self,
        other: Self,
        whole: fn(i64, i64) -> Option<i64>,
        real: fn(f64, f64) -> f64,
    ) -> Option<Self> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => whole(a, b).map(Self::Integer),
            (a, b) => Some(real(a.as_f64(), b.as_f64())).filter(|r| r.is_finite()).map(Self::Real),
        }
    }

    /// Beside a real number there is no exactness to keep.
    fn as_f64(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }
}

/// Written by hand: an untagged enum would say that nothing matched, and not what was expected.
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Number")
            }

            fn visit_i64<E>(self, integer: i64) -> Result<Number, E> {
                Ok(Number::Integer(integer))
            }

            /// Over 63 bits it is a real number.
            fn visit_u64<E>(self, integer: u64) -> Result<Number, E> {
                let whole = i64::try_from(integer).map(Number::Integer);
                Ok(whole.unwrap_or(Number::Real(integer as f64)))
            }

            fn visit_f64<E>(self, real: f64) -> Result<Number, E> {
                Ok(Number::Real(real))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn only_numbers_are_numbers() {
        for text in ["true", "\"1\"", "null", "[1]"] {
            let error = serde_json::from_str::<Number>(text).unwrap_err().to_string();
            assert!(error.contains("expected a Number"), "{text}: {error}");
        }
    }
}
