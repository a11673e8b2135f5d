//! A field of a form: the line that asks for it, and which values it accepts.

use serde_json::Value;

use crate::exit::CommandError;

/// A field of a form of the server.
pub(super) struct FormField<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) is_required: bool,
}

/// The value of `--answer`.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// `FIELD=TEXT`: read like a line that the user types.
    Text(String),
    /// `FIELD:=JSON`.
    Json(Value),
}

impl Answer {
    /// Parses the value of `--answer`, and returns it with the name of its field.
    pub(super) fn parse(text: &str) -> Result<(String, Self), CommandError> {
        let remedy = "write --answer name=text or --answer count:=3";
        let Some((name, value)) = text.split_once('=') else {
            return Err(CommandError::usage(format!("--answer {text}: no value")).hint(remedy));
        };
        let Some(name) = name.strip_suffix(':') else {
            return Ok((name.to_owned(), Self::Text(value.to_owned())));
        };
        let value = serde_json::from_str(value).map_err(|error| {
            CommandError::usage(format!("--answer {name}: not JSON: {error}")).hint(remedy)
        })?;
        Ok((name.to_owned(), Self::Json(value)))
    }
}

impl FormField<'_> {
    pub(super) fn default(&self) -> Option<&Value> {
        self.schema.get("default").filter(|default| !default.is_null())
    }

    /// The line that asks for the field.
    pub(super) fn prompt(&self) -> String {
        let title = self.text("title").unwrap_or(self.name);
        let description = self.text("description").map(|it| format!(" ({it})")).unwrap_or_default();
        let kind = match self.choices() {
            choices if !choices.is_empty() => values(&choices, " | "),
            _ => self.text("type").unwrap_or("text").to_owned(),
        };
        let default = match self.default() {
            None => String::new(),
            Some(Value::String(default)) => format!(", default {default}"),
            Some(default) => format!(", default {default}"),
        };
        let optional = if self.is_required { "" } else { ", optional" };
        format!("{title}{description} [{kind}{default}{optional}]:")
    }

    pub(super) fn read_answer(&self, answer: &Answer) -> Result<Value, String> {
        match answer {
            Answer::Text(text) => self.read_line(text),
            Answer::Json(value) => self.check(value.clone()),
        }
    }

    /// Reads what the user has typed as a value of the field.
    pub(super) fn read_line(&self, line: &str) -> Result<Value, String> {
        let value = match self.text("type") {
            Some("boolean") => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Value::from(true),
                "n" | "no" | "false" => Value::from(false),
                _ => return Err("answer yes or no".to_owned()),
            },
            Some("integer") => {
                line.parse::<i64>().map_err(|_| format!("`{line}` is not an integer"))?.into()
            }
            Some("number") => {
                line.parse::<f64>().map_err(|_| format!("`{line}` is not a number"))?.into()
            }
            Some("array") => line.split(',').map(|item| self.chosen(item)).collect(),
            _ => self.chosen(line),
        };
        self.check(value)
    }

    /// The value of a choice whose title the user has typed; otherwise the text.
    fn chosen(&self, text: &str) -> Value {
        let choices = self.choices();
        let found = choices.iter().find(|(_, title)| title == text.trim());
        match found {
            Some((value, _)) => value.as_str().into(),
            None if choices.is_empty() => text.into(),
            None => text.trim().into(),
        }
    }

    /// Returns a value that matches the schema, or why it does not.
    fn check(&self, value: Value) -> Result<Value, String> {
        match (self.text("type"), &value) {
            (Some("boolean"), Value::Bool(_)) => {}
            (Some("integer"), Value::Number(number)) if is_integer(number) => {
                self.check_amount(number.as_f64(), "", "")?;
            }
            (Some("number"), Value::Number(number)) => {
                self.check_amount(number.as_f64(), "", "")?;
            }
            (Some("array"), Value::Array(items)) => {
                self.check_amount(Some(items.len() as f64), "Items", " values")?;
                items.iter().try_for_each(|item| self.check_choice(item))?;
            }
            (Some("string") | None, Value::String(text)) => {
                self.check_choice(&value)?;
                self.check_text(text)?;
            }
            (kind, value) => {
                return Err(format!("{value} is not a valid {}", kind.unwrap_or("string")));
            }
        }
        Ok(value)
    }

    fn check_choice(&self, value: &Value) -> Result<(), String> {
        let choices = self.choices();
        let text = value.as_str().unwrap_or_default();
        if choices.is_empty() || choices.iter().any(|(choice, _)| choice == text) {
            return Ok(());
        }
        Err(format!("`{text}` is not one of {}", values(&choices, ", ")))
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        if text.is_empty() && self.is_required {
            return Err("at least 1 characters".to_owned());
        }
        self.check_amount(Some(text.chars().count() as f64), "Length", " characters")?;
        let mail =
            |text: &str| text.split_once('@').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
        match self.text("format") {
            Some("email") if !mail(text) => Err(format!("`{text}` is not an email address")),
            Some("uri") if !text.contains(':') => Err(format!("`{text}` is not a URI")),
            _ => Ok(()),
        }
    }

    /// Checks `minimum` and `maximum`, `minLength` and `maxLength`, or `minItems` and `maxItems`.
    fn check_amount(&self, amount: Option<f64>, suffix: &str, unit: &str) -> Result<(), String> {
        let names = match suffix {
            "" => ["minimum".to_owned(), "maximum".to_owned()],
            _ => [format!("min{suffix}"), format!("max{suffix}")],
        };
        let [least, most] = names.map(|name| self.schema.get(name).filter(|it| it.is_number()));
        let amount = amount.unwrap_or(f64::NAN);
        if let Some(least) = least.filter(|least| least.as_f64().is_some_and(|it| amount < it)) {
            return Err(format!("at least {least}{unit}"));
        }
        match most.filter(|most| most.as_f64().is_some_and(|it| amount > it)) {
            Some(most) => Err(format!("at most {most}{unit}")),
            None => Ok(()),
        }
    }

    /// The values of a choice, with their titles.
    fn choices(&self) -> Vec<(String, String)> {
        let field = self.schema.get("items").unwrap_or(self.schema);
        let plain = field.get("enum").and_then(Value::as_array).into_iter().flatten();
        let plain = plain.filter_map(Value::as_str).map(|it| (it.to_owned(), it.to_owned()));
        let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| field.get(key)?.as_array());
        let titled = titled.flatten().filter_map(|option| {
            let value = option.get("const")?.as_str()?;
            let title = option.get("title").and_then(Value::as_str).unwrap_or(value);
            Some((value.to_owned(), title.to_owned()))
        });
        plain.chain(titled).collect()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str)
    }
}

fn is_integer(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}

fn values(choices: &[(String, String)], separator: &str) -> String {
    choices.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: &str, schema: &Value) -> Result<Value, String> {
        FormField { name: "f", schema, is_required: true }.read_line(line)
    }

    #[test]
    fn a_line_is_read_as_the_type_of_its_field() {
        let number = json!({ "type": "integer" });
        assert_eq!(read("7", &number), Ok(json!(7)));
        assert_eq!(read("7.5", &number).unwrap_err(), "`7.5` is not an integer");
        assert_eq!(read("yes", &json!({ "type": "boolean" })), Ok(json!(true)));
        let one = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] });
        assert_eq!(read("Red", &one), Ok(json!("r")));
        assert!(read("blue", &one).unwrap_err().contains("not one of r"));
        let many = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
        assert_eq!(read("a, b", &many), Ok(json!(["a", "b"])));
    }

    #[test]
    fn limits_of_a_field_are_checked() {
        let age = json!({ "type": "integer", "minimum": 3, "maximum": 100 });
        assert_eq!(read("2", &age).unwrap_err(), "at least 3");
        assert_eq!(read("101", &age).unwrap_err(), "at most 100");
        assert_eq!(read("100", &age), Ok(json!(100)));
        let name = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        assert_eq!(read("a", &name).unwrap_err(), "at least 2 characters");
        assert_eq!(read("aaaa", &name).unwrap_err(), "at most 3 characters");
        let many = json!({ "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 1 });
        assert_eq!(read("a,b", &many).unwrap_err(), "at most 1 values");
        let mail = json!({ "type": "string", "format": "email" });
        assert_eq!(read("ada", &mail).unwrap_err(), "`ada` is not an email address");
    }

    #[test]
    fn an_answer_is_read_like_a_line_or_is_json_of_the_type() {
        let schema = json!({ "type": "integer", "minimum": 3 });
        let field = FormField { name: "age", schema: &schema, is_required: true };
        assert_eq!(field.read_answer(&Answer::Text("3".to_owned())), Ok(json!(3)));
        assert_eq!(field.read_answer(&Answer::Json(json!(3))), Ok(json!(3)));
        for wrong in [json!(2), json!("3"), json!(3.5), json!([])] {
            assert!(field.read_answer(&Answer::Json(wrong)).is_err());
        }
    }

    #[test]
    fn a_prompt_names_type_default_and_choices() {
        let schema =
            json!({ "type": "string", "title": "Color", "enum": ["r", "g"], "default": "g" });
        let field = FormField { name: "c", schema: &schema, is_required: false };
        assert_eq!(field.prompt(), "Color [r | g, default g, optional]:");
    }

    #[test]
    fn a_flag_is_a_text_or_json() {
        let text = |it: &str| Answer::Text(it.to_owned());
        assert_eq!(Answer::parse("a=1").unwrap(), ("a".to_owned(), text("1")));
        assert_eq!(Answer::parse("a=b:=c").unwrap(), ("a".to_owned(), text("b:=c")));
        assert_eq!(Answer::parse("a:=1").unwrap(), ("a".to_owned(), Answer::Json(json!(1))));
        assert!(Answer::parse("a").is_err() && Answer::parse("a:=x").is_err());
    }
}
