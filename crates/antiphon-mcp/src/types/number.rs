//! JSON numbers as Rust numbers.
//!
//! Some peers write an integer as `1.0` or `1e3`. It is read as an integer. A float without a fraction is written
//! without one, so that `50` stays `50`.

use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Number;

/// The largest float below which every integer is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A required `f64`.
pub(super) mod float {
    use super::*;

    pub(in crate::types) fn serialize<S: Serializer>(
        value: &f64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if value.fract() == 0.0 && value.abs() < EXACT {
            serializer.serialize_i64(*value as i64)
        } else {
            serializer.serialize_f64(*value)
        }
    }

    pub(in crate::types) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<f64, D::Error> {
        f64::deserialize(deserializer)
    }
}

/// An optional `f64`.
pub(super) mod opt_float {
    use super::*;

    #[allow(clippy::ref_option)] // The signature that serde calls.
    pub(in crate::types) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => float::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::types) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::deserialize(deserializer)
    }
}

/// Reads an optional count; a negative number counts as 0, as `ttlMs` requires.
pub(super) fn opt_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    number.map(|number| count(&number).ok_or_else(|| not_a_count(&number))).transpose()
}

/// Reads a required count.
pub(super) fn required_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    count(&number).ok_or_else(|| not_a_count(&number))
}

fn not_a_count<E: serde::de::Error>(number: &Number) -> E {
    E::custom(format!("{number} is not a whole number"))
}

fn count(number: &Number) -> Option<u64> {
    if let Some(count) = number.as_u64() {
        return Some(count);
    }
    let float = number.as_f64()?;
    if float < 0.0 {
        return Some(0);
    }
    (float.fract() == 0.0).then_some(float as u64)
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "float")]
        float: f64,
        #[serde(default, deserialize_with = "opt_count")]
        count: Option<u64>,
    }

    fn through(json: &str) -> Option<String> {
        let numbers = serde_json::from_str::<Numbers>(json).ok()?;
        serde_json::to_string(&numbers).ok()
    }

    #[test]
    fn integers_have_no_fraction() {
        let cases = [
            (r#"{"float":50,"count":7}"#, r#"{"float":50,"count":7}"#),
            (r#"{"float":50.0,"count":7.0}"#, r#"{"float":50,"count":7}"#),
            (r#"{"float":-0.5,"count":-3}"#, r#"{"float":-0.5,"count":0}"#),
            (r#"{"float":1e300}"#, r#"{"float":1e+300,"count":null}"#),
        ];
        for (read, written) in cases {
            assert_eq!(through(read).as_deref(), Some(written));
        }
        assert_eq!(through(r#"{"float":1,"count":1.5}"#), None);
    }
}
