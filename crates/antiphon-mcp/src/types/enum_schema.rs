//! Choices in a form, in the forms that JSON Schema and the protocol have for them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::number;

/// A field for a choice of one or several options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnumSchema {
    /// The name for people.
    pub title: Option<String>,
    /// What the field means.
    pub description: Option<String>,
    /// The options. If one has a title, all are written with titles.
    pub options: Vec<EnumOption>,
    /// Whether several options may be chosen.
    pub is_multiple: bool,
    /// The least number of options, if several may be chosen.
    pub min_items: Option<u64>,
    /// The greatest number of options, if several may be chosen.
    pub max_items: Option<u64>,
    /// The options at the start. A single choice has at most one; an empty list of a multiple choice is written.
    pub default: Option<Vec<String>>,
    /// Writes titles as `enumNames`, the only form of 2025-06-18. Only for a single choice.
    pub is_legacy: bool,
}

/// An option of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnumOption {
    /// The value for programs.
    pub value: String,
    /// The name for people.
    pub title: Option<String>,
}

impl EnumOption {
    /// Creates an option without a title.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), title: None }
    }

    /// Creates an option with a title.
    pub fn titled(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }

    fn display(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

impl From<&str> for EnumOption {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl EnumSchema {
    /// Creates a choice of one option.
    pub fn single(options: impl IntoIterator<Item = impl Into<EnumOption>>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { options, ..Self::default() }
    }

    /// Creates a choice of several options.
    pub fn multiple(options: impl IntoIterator<Item = impl Into<EnumOption>>) -> Self {
        Self { is_multiple: true, ..Self::single(options) }
    }

    pub(super) fn single_of(value: Value) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Single {
            title: Option<String>,
            description: Option<String>,
            #[serde(flatten)]
            items: Items,
            enum_names: Option<Vec<String>>,
            default: Option<String>,
        }
        let read: Single = serde_json::from_value(value)?;
        Ok(Self {
            title: read.title,
            description: read.description,
            is_legacy: read.enum_names.is_some(),
            options: read.items.options(read.enum_names),
            default: read.default.map(|value| vec![value]),
            ..Self::default()
        })
    }

    pub(super) fn multiple_of(value: Value) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Multiple {
            title: Option<String>,
            description: Option<String>,
            #[serde(default, deserialize_with = "number::opt_count")]
            min_items: Option<u64>,
            #[serde(default, deserialize_with = "number::opt_count")]
            max_items: Option<u64>,
            items: Items,
            default: Option<Vec<String>>,
        }
        let read: Multiple = serde_json::from_value(value)?;
        Ok(Self {
            title: read.title,
            description: read.description,
            options: read.items.options(None),
            is_multiple: true,
            min_items: read.min_items,
            max_items: read.max_items,
            default: read.default,
            is_legacy: false,
        })
    }

    /// Writes the schema.
    pub(super) fn to_schema(&self) -> Map<String, Value> {
        let mut schema = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            value.map(|value| schema.insert(key.to_owned(), value));
        };
        set("title", self.title.clone().map(Value::from));
        set("description", self.description.clone().map(Value::from));
        if self.is_multiple {
            set("type", Some("array".into()));
            set("items", Some(self.items("anyOf", true).into()));
            set("minItems", self.min_items.map(Value::from));
            set("maxItems", self.max_items.map(Value::from));
            set("default", self.default.clone().map(Value::from));
            return schema;
        }
        set("type", Some("string".into()));
        set("default", self.default.iter().flatten().next().cloned().map(Value::from));
        schema.append(&mut self.items("oneOf", false));
        schema
    }

    /// The options as `enum`, or with titles under a keyword.
    fn items(&self, titled: &str, with_type: bool) -> Map<String, Value> {
        let values = || self.options.iter().map(|option| option.value.as_str()).collect::<Value>();
        let has_titles = self.options.iter().any(|option| option.title.is_some());
        let mut items = Map::new();
        if has_titles && !self.is_legacy {
            let option = |it: &EnumOption| json!({ "const": it.value, "title": it.display() });
            items.insert(titled.to_owned(), self.options.iter().map(option).collect());
            return items;
        }
        items.insert("enum".to_owned(), values());
        if with_type {
            items.insert("type".to_owned(), "string".into());
        } else if has_titles {
            let titles = self.options.iter().map(EnumOption::display);
            items.insert("enumNames".to_owned(), titles.collect());
        }
        items
    }
}

setters! { EnumSchema {
    with_title => title: String,
    with_description => description: String,
    with_min_items => min_items: u64,
    with_max_items => max_items: u64,
    with_default => default: Vec<String>,
} }

/// The options of a choice, in one of their forms.
#[derive(Deserialize)]
struct Items {
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    #[serde(rename = "oneOf", alias = "anyOf")]
    titled: Option<Vec<TitledOption>>,
}

#[derive(Deserialize)]
struct TitledOption {
    #[serde(rename = "const")]
    value: String,
    title: Option<String>,
}

impl Items {
    fn options(self, names: Option<Vec<String>>) -> Vec<EnumOption> {
        if let Some(titled) = self.titled {
            let option = |it: TitledOption| EnumOption { value: it.value, title: it.title };
            return titled.into_iter().map(option).collect();
        }
        let mut names = names.unwrap_or_default().into_iter();
        let values = self.values.unwrap_or_default().into_iter();
        values.map(|value| EnumOption { value, title: names.next() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PrimitiveSchema;

    fn written(field: impl Into<PrimitiveSchema>) -> Value {
        let field = field.into();
        let value = serde_json::to_value(&field).unwrap();
        assert_eq!(serde_json::from_value::<PrimitiveSchema>(value.clone()).unwrap(), field);
        value
    }

    #[test]
    fn choices_have_four_forms() {
        let titled = || [EnumOption::titled("r", "Red"), EnumOption::titled("g", "Green")];
        assert_eq!(
            written(EnumSchema::single(["r", "g"]).with_default(vec!["r".to_owned()])),
            json!({"type": "string", "enum": ["r", "g"], "default": "r"})
        );
        assert_eq!(
            written(EnumSchema::multiple(titled()).with_min_items(1_u64)),
            json!({"type": "array", "minItems": 1, "items": {"anyOf": [
                {"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}})
        );
        assert_eq!(
            written(EnumSchema { is_legacy: true, ..EnumSchema::single(titled()) }),
            json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]})
        );
    }
}
