//! The fields of a form: a flat subset of JSON Schema.
//!
//! The fields keep their order, which a form shows.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::enum_schema::EnumSchema;
use super::number;
use super::tool::JsonObject;

/// The fields of a form.
///
/// ```
/// use antiphon_mcp::types::{ElicitationSchema, NumberSchema, StringFormat, StringSchema};
///
/// let schema = ElicitationSchema::new()
///     .required("email", StringSchema::new().with_format(StringFormat::Email))
///     .optional("age", NumberSchema::integer().with_minimum(18));
/// assert_eq!(schema.required, ["email"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationSchema {
    #[serde(rename = "type", default)]
    object: ObjectType,
    /// The dialect of JSON Schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The fields in their order.
    #[serde(serialize_with = "write_fields", deserialize_with = "read_fields")]
    pub properties: Vec<(String, PrimitiveSchema)>,
    /// The names of the fields that need a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

/// The type of a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ObjectType {
    #[default]
    Object,
}

impl ElicitationSchema {
    /// Creates a form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that needs a value.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, field: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.push(name.clone());
        self.optional(name, field)
    }

    /// Adds a field.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<PrimitiveSchema>) -> Self {
        self.properties.push((name.into(), field.into()));
        self
    }

    /// The default values of the fields that have one. A form shows them before the user changes them.
    pub fn defaults(&self) -> JsonObject {
        let default = |field| serde_json::to_value(field).ok()?.get_mut("default").map(Value::take);
        let values = self.properties.iter();
        values.filter_map(|(name, field)| Some((name.clone(), default(field)?))).collect()
    }
}

fn write_fields<S: Serializer>(
    fields: &[(String, PrimitiveSchema)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, field)| (name, field)))
}

fn read_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, PrimitiveSchema)>, D::Error> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(String, PrimitiveSchema)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an Object of fields")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry()? {
                fields.push(field);
            }
            Ok(fields)
        }
    }
    deserializer.deserialize_map(Fields)
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// A text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A yes or no.
    Boolean(BooleanSchema),
    /// A choice.
    Enum(EnumSchema),
}

impl From<StringSchema> for PrimitiveSchema {
    fn from(field: StringSchema) -> Self {
        Self::String(field)
    }
}

impl From<NumberSchema> for PrimitiveSchema {
    fn from(field: NumberSchema) -> Self {
        Self::Number(field)
    }
}

impl From<BooleanSchema> for PrimitiveSchema {
    fn from(field: BooleanSchema) -> Self {
        Self::Boolean(field)
    }
}

impl From<EnumSchema> for PrimitiveSchema {
    fn from(field: EnumSchema) -> Self {
        Self::Enum(field)
    }
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Typed<'a, T> {
            #[serde(rename = "type")]
            name: &'static str,
            #[serde(flatten)]
            field: &'a T,
        }
        match self {
            Self::String(field) => Typed { name: "string", field }.serialize(serializer),
            Self::Number(field) => {
                let name = if field.is_integer { "integer" } else { "number" };
                Typed { name, field }.serialize(serializer)
            }
            Self::Boolean(field) => Typed { name: "boolean", field }.serialize(serializer),
            Self::Enum(field) => field.to_schema().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        field_of(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn field_of(members: Map<String, Value>) -> Result<PrimitiveSchema, serde_json::Error> {
    let name = members.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_choice = members.contains_key("enum") || members.contains_key("oneOf");
    let value = Value::Object(members);
    Ok(match &*name {
        "string" if is_choice => EnumSchema::single_of(value)?.into(),
        "array" => EnumSchema::multiple_of(value)?.into(),
        "string" => PrimitiveSchema::String(serde_json::from_value(value)?),
        "boolean" => PrimitiveSchema::Boolean(serde_json::from_value(value)?),
        "number" | "integer" => {
            let number: NumberSchema = serde_json::from_value(value)?;
            PrimitiveSchema::Number(NumberSchema { is_integer: name == "integer", ..number })
        }
        other => return Err(Error::custom(format!("unknown type of field {other:?}"))),
    })
}

/// A field for a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StringSchema {
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the field means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least length in characters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub min_length: Option<u64>,
    /// The greatest length in characters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub max_length: Option<u64>,
    /// The format of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// The value at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl StringSchema {
    /// Creates a field for any text.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { StringSchema {
    with_title => title: String,
    with_description => description: String,
    with_min_length => min_length: u64,
    with_max_length => max_length: u64,
    with_format => format: StringFormat,
    with_default => default: String,
} }

/// The format of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StringFormat {
    /// An e-mail address.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date and a time.
    DateTime,
    /// A format that the protocol does not define.
    #[serde(untagged)]
    Other(String),
}

/// A field for a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NumberSchema {
    /// Whether the number has no fraction: the type `integer`.
    #[serde(skip)]
    pub is_integer: bool,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the field means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub minimum: Option<f64>,
    /// The greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub maximum: Option<f64>,
    /// The value at the start.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub default: Option<f64>,
}

impl NumberSchema {
    /// Creates a field for any number.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a field for an integer.
    pub fn integer() -> Self {
        Self { is_integer: true, ..Self::default() }
    }
}

setters! { NumberSchema {
    with_title => title: String,
    with_description => description: String,
    with_minimum => minimum: f64,
    with_maximum => maximum: f64,
    with_default => default: f64,
} }

/// A field for a yes or no.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BooleanSchema {
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the field means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

impl BooleanSchema {
    /// Creates a field.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { BooleanSchema {
    with_title => title: String,
    with_description => description: String,
    with_default => default: bool,
} }

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fields_of_a_form_keep_their_order() {
        let text = r#"{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"integer"}},"required":["z"]}"#;
        let schema: ElicitationSchema = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&schema).unwrap(), text);
        let built = ElicitationSchema::new()
            .required("z", BooleanSchema::new())
            .optional("a", NumberSchema::integer());
        assert_eq!(built, schema);
    }

    #[test]
    fn defaults_have_the_types_of_their_fields() {
        let form = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["a", "b"], "default": "b"},
            "is_open": {"type": "boolean", "default": true},
            "comment": {"type": "string"}}});
        let schema: ElicitationSchema = serde_json::from_value(form).unwrap();
        let defaults =
            json!({"name": "Ada", "age": 30, "score": 95.5, "status": "b", "is_open": true});
        assert_eq!(Value::Object(schema.defaults()), defaults);
    }

    #[test]
    fn a_field_of_another_type_is_an_error() {
        for field in
            [json!({"type": "object"}), json!({}), json!(["string"]), json!({"type": "array"})]
        {
            assert!(serde_json::from_value::<PrimitiveSchema>(field.clone()).is_err(), "{field}");
        }
    }
}
