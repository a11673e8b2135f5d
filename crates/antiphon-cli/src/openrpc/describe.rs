//! `antiphon describe`: the description of one method.

use antiphon::RawJson;
use antiphon::openrpc::{Content, Document, Method, ParamStructure};
use clap::Args;
use serde_json::{Map, Value};

use super::discovery::{self, SchemaArgs};
use super::list::as_json;
use super::schema_text::schema_text;
use super::signature::{SignatureKind, is_repeated, signature};
use super::{table, validate};
use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::output;

/// Describe a method: its params, result and errors
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Method to describe
    method: String,
    #[command(flatten)]
    schema: SchemaArgs,
    /// Print the OpenRPC method object as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon describe http://127.0.0.1:8650 subtract
  antiphon describe ws://127.0.0.1:8650 subscribe_ticks
  antiphon describe http://127.0.0.1:8650 subtract --json | jq .params
  antiphon describe http://127.0.0.1:8545 eth_call --schema openrpc.json

The description comes from the OpenRPC document that rpc.discover returns.
`antiphon list` prints all methods.";

pub(crate) async fn run(args: DescribeArgs) -> Result<Exit, CommandError> {
    let DescribeArgs { connect, method, schema, json } = args;
    discovery::with_document(&connect, &schema, |document| show(document, &method, json)).await
}

fn show(document: &Document, name: &str, json: bool) -> Result<Exit, CommandError> {
    let Some(method) = document.method(name) else {
        return Err(validate::unknown_method(document, name).with_exit(Exit::PeerError));
    };
    match json {
        true => output::result(&RawJson::parse(as_json(method)?).unwrap_or(RawJson::NULL))?,
        false => output::line(&lines(method, &document.components.schemas).join("\n"))?,
    }
    Ok(Exit::Success)
}

/// Returns the description, line by line.
fn lines(method: &Method, schemas: &Map<String, Value>) -> Vec<String> {
    let mut lines = vec![heading(method)];
    section(&mut lines, "", &prose(method));
    section(&mut lines, params_title(method), &params(&method.params, schemas));
    section(&mut lines, "Result:", &result(method, schemas));
    section(&mut lines, "Errors:", &errors(method));
    section(&mut lines, "Examples:", &examples(method));
    lines
}

fn heading(method: &Method) -> String {
    let kind = match SignatureKind::of(method) {
        SignatureKind::Method => "",
        SignatureKind::Notification => "  (notification)",
        SignatureKind::Subscription => "  (subscription)",
    };
    let deprecated = if method.deprecated { "  (deprecated)" } else { "" };
    table::cell(&signature(method)) + kind + deprecated
}

/// Adds an empty line, a title and the body, unless the body is empty.
fn section(lines: &mut Vec<String>, title: &str, body: &[String]) {
    if body.is_empty() {
        return;
    }
    lines.push(String::new());
    if !title.is_empty() {
        lines.push(title.to_owned());
    }
    lines.extend(body.iter().map(|line| format!("  {line}").trim_end().to_owned()));
}

fn prose(method: &Method) -> Vec<String> {
    let text = method.description.as_deref().or(method.summary.as_deref()).unwrap_or_default();
    let mut lines: Vec<_> = output::visible(text).lines().map(str::to_owned).collect();
    let aliases: Vec<_> = method.aliases().map(table::cell).collect();
    if !aliases.is_empty() {
        lines.push(format!("Also called {}.", aliases.join(", ")));
    }
    lines
}

fn params_title(method: &Method) -> &'static str {
    match method.param_structure {
        ParamStructure::ByName => "Params, by name:",
        ParamStructure::ByPosition => "Params, by position:",
        _ => "Params, by position or by name:",
    }
}

fn params(params: &[Content], schemas: &Map<String, Value>) -> Vec<String> {
    let rows = params.iter().map(|param| {
        let needed = match (param.required, param.schema.get("default")) {
            _ if is_repeated(param) => "any number".to_owned(),
            (true, _) => "required".to_owned(),
            (false, Some(default)) if !default.is_null() => format!("default {default}"),
            (false, _) => "optional".to_owned(),
        };
        vec![param.name.clone(), schema_text(&param.schema, schemas), needed, about(param)]
    });
    table::aligned(&rows.collect::<Vec<_>>())
}

fn about(content: &Content) -> String {
    let text = content.description.as_ref().or(content.summary.as_ref()).map(String::as_str);
    let text = text.or_else(|| content.schema.get("description").and_then(Value::as_str));
    text.unwrap_or_default().to_owned()
}

fn result(method: &Method, schemas: &Map<String, Value>) -> Vec<String> {
    let Some(result) = &method.result else { return Vec::new() };
    let value = match SignatureKind::of(method) {
        SignatureKind::Subscription => "the id of the subscription".to_owned(),
        _ => schema_text(&result.schema, schemas),
    };
    let mut rows = vec![vec![value, about(result)]];
    let items = |topic: &Value| {
        let text = |name: &str| topic.get(name).and_then(Value::as_str).unwrap_or_default();
        let item = topic.get("schema").unwrap_or(&Value::Bool(true));
        let kind = topic.get("kind").map(|kind| format!(" of {kind}")).unwrap_or_default();
        let ended = format!("ended by {}", text("unsubscribe"));
        vec![format!("items{kind} by {}: {}", text("item"), schema_text(item, schemas)), ended]
    };
    match method.rest.get("x-subscription") {
        Some(Value::Array(kinds)) => rows.extend(kinds.iter().map(items)),
        Some(one) => rows.push(items(one)),
        None => {}
    }
    table::aligned(&rows)
}

fn errors(method: &Method) -> Vec<String> {
    let rows =
        method.errors.iter().map(|error| vec![error.code.to_string(), error.message.clone()]);
    table::aligned(&rows.collect::<Vec<_>>())
}

/// Formats the examples, which are pairs of params and result.
fn examples(method: &Method) -> Vec<String> {
    let examples = method.rest.get("examples").and_then(Value::as_array);
    let rows = examples.into_iter().flatten().map(|example| {
        let params = example.get("params").and_then(Value::as_array);
        let params = params.into_iter().flatten().map(|param| param["value"].to_string());
        let params = params.collect::<Vec<_>>().join(",");
        let returns = match example.get("result").and_then(|result| result.get("value")) {
            Some(value) => format!("returns {value}"),
            None => String::new(),
        };
        let name = example.get("summary").or_else(|| example.get("name")).and_then(Value::as_str);
        vec![format!("[{params}]"), returns, name.unwrap_or_default().to_owned()]
    });
    table::aligned(&rows.collect::<Vec<_>>())
}
