//! `antiphon list`: the methods that the other side says it has, a line each.

use std::io::{self, IsTerminal as _};

use antiphon::RawJson;
use antiphon::openrpc::{Document, Method};
use clap::Args;

use super::discovery::{self, Schema};
use super::signature::{Kind, signature};
use super::table;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::Remote;

/// List the methods that the other side says it has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    schema: Schema,
    /// Print each method as OpenRPC has it, one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon list http://127.0.0.1:8650
  antiphon list ws://127.0.0.1:8650 | cut -f1                      the names alone
  antiphon list http://127.0.0.1:8650 --json | jq -r 'select(.deprecated) | .name'
  antiphon list http://node:8545 --schema openrpc.json             of one that has no rpc.discover

It asks for the OpenRPC document that rpc.discover gives, and prints in the order of that document.
subtract(minuend, subtrahend) takes two params; count? may be left out, number... is any number of
them, and those in {braces} are taken by name only.
Elsewhere than on a terminal a line is name, kind, signature and summary, with a tab between.";

pub(crate) async fn run(args: ListArgs) -> Result<Exit, Failure> {
    let ListArgs { remote, schema, json } = args;
    discovery::read(&remote, &schema, |document| show(document, json)).await
}

fn show(document: &Document, json: bool) -> Result<Exit, Failure> {
    let lines = match json {
        true => document.methods.iter().map(as_json).collect::<Result<Vec<_>, _>>()?,
        false if io::stdout().is_terminal() => for_people(&document.methods),
        false => document.methods.iter().map(for_programs).collect(),
    };
    if !lines.is_empty() {
        output::line(&lines.join("\n"))?;
    }
    Ok(Exit::Success)
}

/// The method on one line.
pub(crate) fn as_json(method: &Method) -> Result<String, Failure> {
    let json = RawJson::encode(method);
    let json = json.map_err(|error| Failure::new(Exit::Protocol, error.to_string()))?;
    Ok(json.as_str().to_owned())
}

fn for_programs(method: &Method) -> String {
    let kind = Kind::of(method).name();
    let parts = [&*method.name, kind, &signature(method), &summary(method)];
    parts.map(table::cell).join("\t")
}

fn for_people(methods: &[Method]) -> Vec<String> {
    let rows = methods.iter().map(|method| {
        let kind = match Kind::of(method) {
            Kind::Method => "",
            other => other.name(),
        };
        vec![signature(method), kind.to_owned(), summary(method)]
    });
    table::aligned(&rows.collect::<Vec<_>>())
}

fn summary(method: &Method) -> String {
    let said = method.summary.as_deref().or(method.description.as_deref()).unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    match method.deprecated {
        true => format!("(deprecated) {first}"),
        false => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_columns_and_a_pipe_tabs() {
        let text = r#"{"openrpc": "1.4.1", "info": {"title": "t", "version": "1"}, "methods": [
            {"name": "a", "summary": "Does\ta.\nMore.", "result": {"name": "r", "schema": true},
             "params": [{"name": "x", "required": true, "schema": true}, {"name": "y", "schema": true}]},
            {"name": "told", "deprecated": true, "params": [{"name": "z", "schema": true, "x-repeated": true}]},
            {"name": "\u001b[2Jb", "description": "Named.", "paramStructure": "by-name",
             "params": [{"name": "x", "schema": true}], "result": {"name": "r", "schema": true}}
        ]}"#;
        let document = Document::parse(text).unwrap();
        let people = for_people(&document.methods);
        assert_eq!(
            people,
            [
                "a(x, y?)                        Does a.",
                "told(z...)        notification  (deprecated)",
                "\\u{1b}[2Jb({x?})                Named.",
            ]
        );
        assert_eq!(for_programs(&document.methods[0]), "a\tmethod\ta(x, y?)\tDoes a.");
        assert_eq!(
            for_programs(&document.methods[1]),
            "told\tnotification\ttold(z...)\t(deprecated)"
        );
    }
}
