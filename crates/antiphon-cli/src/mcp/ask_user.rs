//! The questions of a server, answered by the user on the terminal or by flags.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;

use antiphon::ErrorObject;
use antiphon_mcp::client::McpClientBuilder;
use antiphon_mcp::types::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, JsonObject, SamplingContent,
};
use clap::Args;
use serde_json::Value;

use crate::exit::CommandError;
use crate::openrpc::table;
use crate::{output, waiting_line};

/// The flags that answer questions of the server.
#[derive(Clone, Debug, Args)]
pub(super) struct AnswerFlags {
    /// Fill in this field of the forms of the server, with a text or with a JSON value [repeatable]
    #[arg(long, value_name = "FIELD=TEXT|FIELD:=JSON")]
    answer: Vec<String>,
    /// Answer requests of the server to a language model with this text
    #[arg(long, value_name = "TEXT")]
    model_answer: Option<String>,
    /// Do not ask the user on the terminal
    #[arg(long)]
    no_ask: bool,
}

/// The answers given by flags, and whether the user can be asked on the terminal.
pub(super) struct AskUser {
    answers: BTreeMap<String, Value>,
    model_answer: Option<String>,
    is_terminal: bool,
}

impl AskUser {
    pub(super) fn new(flags: &AnswerFlags) -> Result<Self, CommandError> {
        let answers = flags.answer.iter().map(|text| answer(text)).collect::<Result<_, _>>()?;
        // Questions go to stderr, so stdout may be a pipe.
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let model_answer = flags.model_answer.clone();
        Ok(Self { answers, model_answer, is_terminal: is_terminal && !flags.no_ask })
    }

    /// Declares what can be answered.
    pub(super) fn declare(self: Arc<Self>, mut builder: McpClientBuilder) -> McpClientBuilder {
        let user = self.clone();
        let elicit = move |params| {
            let user = user.clone();
            async move { on_blocking_thread(move || user.elicit(params)).await }
        };
        if self.is_terminal {
            builder = builder.on_elicit(elicit);
        } else if !self.answers.is_empty() {
            builder = builder.on_elicit_form(elicit);
        }
        if self.is_terminal || self.model_answer.is_some() {
            let user = self.clone();
            builder = builder.on_sample(move |params| {
                let user = user.clone();
                async move { on_blocking_thread(move || user.sample(&params)).await }
            });
        }
        builder
    }

    fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        match params {
            ElicitParams::Form(form) => self.fill_in(&form),
            ElicitParams::Url(url) => self.open(&url),
            _ => Err(ErrorObject::invalid_params()),
        }
    }

    /// Fills in a form, field by field.
    fn fill_in(&self, form: &ElicitFormParams) -> Result<ElicitResult, ErrorObject> {
        let schema = serde_json::to_value(&form.requested_schema).map_err(ErrorObject::internal)?;
        let fields = schema.get("properties").and_then(Value::as_object).cloned();
        let required = schema.get("required").and_then(Value::as_array).cloned();
        let required = required.unwrap_or_default();
        output::note(&format!("The server asks: {}", output::visible(&form.message)));
        if self.is_terminal && !fields.as_ref().is_none_or(JsonObject::is_empty) {
            output::note(&output::dim("enter: the default; !decline, !cancel: no answer"));
        }
        let mut content = JsonObject::new();
        for (name, field) in fields.unwrap_or_default() {
            if let Some(answer) = self.answers.get(&name) {
                content.insert(name, answer.clone());
                continue;
            }
            let is_required = required.iter().any(|it| it == name.as_str());
            match self.ask_field(&name, &field, is_required)? {
                FieldAnswer::Value(value) => drop(content.insert(name, value)),
                FieldAnswer::Nothing => {}
                FieldAnswer::End(action) => return Ok(ElicitResult::new(action)),
            }
        }
        Ok(ElicitResult::accept(content))
    }

    fn ask_field(
        &self,
        name: &str,
        field: &Value,
        is_required: bool,
    ) -> Result<FieldAnswer, ErrorObject> {
        let default = field.get("default").filter(|default| !default.is_null());
        if !self.is_terminal {
            return match default {
                Some(default) => Ok(FieldAnswer::Value(default.clone())),
                None if is_required => Ok(FieldAnswer::End(ElicitAction::Cancel)),
                None => Ok(FieldAnswer::Nothing),
            };
        }
        loop {
            // On one line, so that a server cannot write lines that look like those of the command.
            output::draw(&format!("{} ", table::cell(&prompt(name, field, is_required))));
            let Some(line) = read_line() else { return Ok(FieldAnswer::End(ElicitAction::Cancel)) };
            match (line.as_str(), default) {
                ("!decline", _) => return Ok(FieldAnswer::End(ElicitAction::Decline)),
                ("!cancel", _) => return Ok(FieldAnswer::End(ElicitAction::Cancel)),
                ("", Some(default)) => return Ok(FieldAnswer::Value(default.clone())),
                ("", None) if !is_required => return Ok(FieldAnswer::Nothing),
                _ => {}
            }
            match read_value(&line, field) {
                Ok(value) => return Ok(FieldAnswer::Value(value)),
                Err(reason) => output::note(&reason),
            }
        }
    }

    /// Shows a URL. It is never opened by itself: the server chose it.
    fn open(&self, params: &ElicitUrlParams) -> Result<ElicitResult, ErrorObject> {
        output::note(&format!("The server asks: {}", output::visible(&params.message)));
        output::note(&format!("Open this page if you trust it: {}", output::visible(&params.url)));
        output::draw("done? [y]es, [d]ecline, [c]ancel: ");
        Ok(ElicitResult::new(match read_line().as_deref() {
            Some("y" | "yes") => ElicitAction::Accept,
            Some("d" | "decline") => ElicitAction::Decline,
            _ => ElicitAction::Cancel,
        }))
    }

    /// Answers in place of a model.
    fn sample(&self, params: &CreateMessageParams) -> Result<CreateMessageResult, ErrorObject> {
        let answer = match &self.model_answer {
            Some(answer) => answer.clone(),
            None => {
                output::note("The server asks a model. Answer in its place:");
                let texts = params.messages.iter().flat_map(|message| &message.content);
                for text in texts.filter_map(SamplingContent::as_text) {
                    output::note(&output::dim(&output::visible(text)));
                }
                output::draw("answer: ");
                let refused = || ErrorObject::new(-1, "User rejected sampling request");
                read_line().filter(|line| !line.is_empty()).ok_or_else(refused)?
            }
        };
        Ok(CreateMessageResult::new("user", SamplingContent::text(answer)))
    }
}

enum FieldAnswer {
    Value(Value),
    /// An optional field stays empty.
    Nothing,
    End(ElicitAction),
}

/// The line that asks for a field.
fn prompt(name: &str, field: &Value, is_required: bool) -> String {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    let title = text("title").unwrap_or(name);
    let description = text("description").map(|it| format!(" ({it})")).unwrap_or_default();
    let kind = match choices(field) {
        choices if !choices.is_empty() => {
            choices.into_iter().map(|(value, _)| value).collect::<Vec<_>>().join(" | ")
        }
        _ => text("type").unwrap_or("text").to_owned(),
    };
    let default = match field.get("default") {
        Some(Value::Null) | None => String::new(),
        Some(Value::String(default)) => format!(", default {default}"),
        Some(default) => format!(", default {default}"),
    };
    let optional = if is_required { "" } else { ", optional" };
    format!("{title}{description} [{kind}{default}{optional}]:")
}

/// The values of a choice, with their titles.
fn choices(field: &Value) -> Vec<(String, String)> {
    let of = |field: &Value| -> Vec<(String, String)> {
        let plain = field.get("enum").and_then(Value::as_array).into_iter().flatten();
        let plain = plain.filter_map(Value::as_str).map(|it| (it.to_owned(), it.to_owned()));
        let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| field.get(key)?.as_array());
        let titled = titled.flatten().filter_map(|option| {
            let value = option.get("const")?.as_str()?;
            let title = option.get("title").and_then(Value::as_str).unwrap_or(value);
            Some((value.to_owned(), title.to_owned()))
        });
        plain.chain(titled).collect()
    };
    match field.get("items") {
        Some(items) => of(items),
        None => of(field),
    }
}

/// Reads what the user has typed as a value of a field.
fn read_value(line: &str, field: &Value) -> Result<Value, String> {
    let choices = choices(field);
    let choose = |text: &str| {
        let text = text.trim();
        let found = choices.iter().find(|(value, title)| value == text || title == text);
        found.map(|(value, _)| Value::from(value.as_str())).ok_or_else(|| {
            let known: Vec<_> = choices.iter().map(|(value, _)| value.as_str()).collect();
            format!("`{text}` is not one of {}", known.join(", "))
        })
    };
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("answer yes or no".to_owned()),
        },
        Some("integer") => line.parse::<i64>().map(Value::from).map_err(|error| error.to_string()),
        Some("number") => line.parse::<f64>().map(Value::from).map_err(|error| error.to_string()),
        Some("array") => {
            line.split(',').map(choose).collect::<Result<Vec<_>, _>>().map(Value::from)
        }
        _ if !choices.is_empty() => choose(line),
        _ => check_length(line, field),
    }
}

fn check_length(line: &str, field: &Value) -> Result<Value, String> {
    let limit = |key: &str| field.get(key).and_then(Value::as_u64);
    let length = line.chars().count() as u64;
    if limit("minLength").is_some_and(|least| length < least) || (length == 0) {
        return Err(format!("at least {} characters", limit("minLength").unwrap_or(1)));
    }
    match limit("maxLength").filter(|most| length > *most) {
        Some(most) => Err(format!("at most {most} characters")),
        None => Ok(line.into()),
    }
}

fn answer(text: &str) -> Result<(String, Value), CommandError> {
    let remedy = "write --answer name=text or --answer count:=3";
    if let Some((name, json)) = text.split_once(":=") {
        let value = serde_json::from_str(json);
        let value = value.map_err(|error| {
            CommandError::usage(format!("--answer {name}: not JSON: {error}")).hint(remedy)
        })?;
        return Ok((name.to_owned(), value));
    }
    let pair = text.split_once('=');
    let pair =
        pair.ok_or_else(|| CommandError::usage(format!("--answer {text}: no value")).hint(remedy));
    pair.map(|(name, value)| (name.to_owned(), value.into()))
}

/// Reads a line of stdin; `None` at its end.
fn read_line() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    matches!(read, Ok(1..)).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Runs code that waits for the user. Other messages of the connection go on.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    // One question after the other: they share the terminal.
    static TERMINAL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _terminal = TERMINAL.lock().await;
    let _alone = waiting_line::Hidden::new();
    let answered = tokio::task::spawn_blocking(work).await;
    answered.unwrap_or_else(|panic| Err(ErrorObject::internal(panic)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_read_as_the_type_of_its_field() {
        let number = json!({ "type": "integer" });
        assert_eq!(read_value("7", &number), Ok(json!(7)));
        assert!(read_value("7.5", &number).is_err());
        assert_eq!(read_value("yes", &json!({ "type": "boolean" })), Ok(json!(true)));
        let one = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] });
        assert_eq!(read_value("Red", &one), Ok(json!("r")));
        assert!(read_value("blue", &one).unwrap_err().contains("not one of r"));
        let many = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
        assert_eq!(read_value("a, b", &many), Ok(json!(["a", "b"])));
    }

    #[test]
    fn a_prompt_names_type_default_and_choices() {
        let field =
            json!({ "type": "string", "title": "Color", "enum": ["r", "g"], "default": "g" });
        assert_eq!(prompt("c", &field, false), "Color [r | g, default g, optional]:");
    }

    #[test]
    fn an_answer_is_a_text_or_json() {
        assert_eq!(answer("a=1").unwrap(), ("a".to_owned(), json!("1")));
        assert_eq!(answer("a:=1").unwrap(), ("a".to_owned(), json!(1)));
        assert!(answer("a").is_err() && answer("a:=x").is_err());
    }
}
