//! Numbers for the arithmetic of the demonstration service.

use std::borrow::Cow;
use std::fmt;

use antiphon::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

/// A JSON Number. 64-bit integers are exact.
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

    /// Returns `None` if the result is out of range. Never panics, wraps or returns an infinity.
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

    /// Converts to a float. The other operand is a float, so the result is not exact anyway.
    fn as_f64(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }
}

/// Written by hand: the error of an untagged enum does not name the expected type.
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;

        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Number")
            }

            fn visit_i64<E>(self, integer: i64) -> Result<Number, E> {
                Ok(Number::Integer(integer))
            }

            /// Integers above `i64::MAX` become floats.
            fn visit_u64<E>(self, integer: u64) -> Result<Number, E> {
                let whole = i64::try_from(integer).map(Number::Integer);
                Ok(whole.unwrap_or(Number::Real(integer as f64)))
            }

            fn visit_f64<E>(self, real: f64) -> Result<Number, E> {
                Ok(Number::Real(real))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
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
    fn other_json_types_are_rejected() {
        for text in ["true", "\"1\"", "null", "[1]"] {
            let error = serde_json::from_str::<Number>(text).unwrap_err().to_string();
            assert!(error.contains("expected a Number"), "{text}: {error}");
        }
    }
}
