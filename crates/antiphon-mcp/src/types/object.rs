//! Reads a type from a JSON Object, and from nothing else.

use serde::Deserializer;
use serde::de::{DeserializeOwned, Visitor};

/// Reads params or a result, which must be an Object.
///
/// Derived serde code also reads a struct from an Array, such as `["echo", {}]` as the params of `tools/call`. The
/// protocol has no such form.
///
/// ```
/// use antiphon_mcp::types::{CallToolParams, from_object};
///
/// assert!(from_object::<CallToolParams>(r#"{"name":"echo"}"#).is_ok());
/// assert!(from_object::<CallToolParams>(r#"["echo"]"#).is_err());
/// ```
///
/// # Errors
/// Fails if the text is not an Object, or does not have this type.
pub fn from_object<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = T::deserialize(ObjectOnly(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// Asks for a map, whatever the type asks for.
struct ObjectOnly<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    // An optional map, which `Meta` asks for.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_some(self)
    }

    // A `RawJson`, with the name that serde_json knows. A type that reads one checks the text itself.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CallToolResult, ClientCapabilities, ContentBlock, EmptyResult, Meta};

    #[test]
    fn only_an_object_is_read() {
        assert!(from_object::<CallToolResult>(r#"{"content":[]}"#).is_ok());
        assert!(from_object::<ContentBlock>(r#"{"type":"text","text":""}"#).is_ok());
        assert!(from_object::<Meta>(r#"{"a":1}"#).is_ok());
        for json in ["[]", "[[]]", "null", "1", "\"x\"", "{} {}", "{"] {
            assert!(from_object::<CallToolResult>(json).is_err(), "{json}");
            assert!(from_object::<ClientCapabilities>(json).is_err(), "{json}");
            assert!(from_object::<EmptyResult>(json).is_err(), "{json}");
            assert!(from_object::<Meta>(json).is_err(), "{json}");
        }
        assert!(from_object::<ContentBlock>(r#"["text","x"]"#).is_err());
    }
}
