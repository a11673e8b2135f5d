//! The variables of a URI, as the type that a handler takes. Each is a text that can be read as another type.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

/// Decodes the variables of a URI. A number in a URI is read as a number where the type wants one.
pub(crate) fn variables<V: DeserializeOwned>(
    values: BTreeMap<String, String>,
) -> Result<V, String> {
    use serde::de::value::{Error, MapDeserializer};
    let values = values.into_iter().map(|(name, value)| (name, Variable(value)));
    V::deserialize(MapDeserializer::<_, Error>::new(values)).map_err(|error| error.to_string())
}

/// A value of a URI: a text that can be read as another type.
struct Variable(String);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Variable {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident;)*) => {
        $(
            fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
                match self.0.parse() {
                    Ok(value) => visitor.$visit(value),
                    Err(error) => Err(serde::de::Error::custom(format!("`{}`: {error}", self.0))),
                }
            }
        )*
    };
}

impl<'de> serde::Deserializer<'de> for Variable {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    parsed! {
        deserialize_bool => visit_bool;
        deserialize_i8 => visit_i8;
        deserialize_i16 => visit_i16;
        deserialize_i32 => visit_i32;
        deserialize_i64 => visit_i64;
        deserialize_u8 => visit_u8;
        deserialize_u16 => visit_u16;
        deserialize_u32 => visit_u32;
        deserialize_u64 => visit_u64;
        deserialize_f32 => visit_f32;
        deserialize_f64 => visit_f64;
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: serde::de::Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let variant: serde::de::value::StringDeserializer<Self::Error> =
            serde::de::IntoDeserializer::into_deserializer(self.0);
        variant.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        id: u64,
        name: Option<String>,
        #[serde(default)]
        deep: bool,
    }

    fn place(values: &[(&str, &str)]) -> Result<Place, String> {
        let owned = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables(owned.collect())
    }

    #[test]
    fn variables_have_the_types_of_the_handler() {
        let expected = Place { id: 7, name: Some("x".to_owned()), deep: true };
        assert_eq!(place(&[("id", "7"), ("name", "x"), ("deep", "true")]).unwrap(), expected);
        assert!(place(&[("id", "seven")]).unwrap_err().contains("seven"));
    }
}
