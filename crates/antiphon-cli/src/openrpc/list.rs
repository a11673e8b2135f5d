//! `antiphon list`: the methods of a server, one per line.

use std::io::{self, IsTerminal as _};

use antiphon::RawJson;
use antiphon::openrpc::{Document, Method};
use clap::Args;

use super::discovery::{self, SchemaArgs};
use super::signature::{SignatureKind, signature};
use super::table;
use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::output;

/// List the methods of a server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    /// Print each method as an OpenRPC method object, one JSON object per line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon list http://127.0.0.1:8650
  antiphon list ws://127.0.0.1:8650 | cut -f1                 # names only
  antiphon list http://127.0.0.1:8650 --json | jq .summary
  antiphon list http://127.0.0.1:8545 --schema openrpc.json   # from a file

The methods come from the OpenRPC document that rpc.discover returns.

Signatures:
  subtract(minuend, subtrahend)   two required params
  ticks(ms, count?)               count is optional
  sum(number...)                  any number of params
  query({filter})                 params by name only

On a terminal the output is a table. Elsewhere each line has four fields with
tabs between them: name, kind, signature, summary.";

pub(crate) async fn run(args: ListArgs) -> Result<Exit, CommandError> {
    let ListArgs { connect, schema, json } = args;
    discovery::with_document(&connect, &schema, |document| show(document, json)).await
}

fn show(document: &Document, json: bool) -> Result<Exit, CommandError> {
    let lines = match json {
        true => document.methods.iter().map(as_json).collect::<Result<Vec<_>, _>>()?,
        false if io::stdout().is_terminal() => for_people(&document.methods),
        false => document.methods.iter().map(for_programs).collect(),
    };
    if !lines.is_empty() {
        // The other forms are escaped already.
        let print = if json { output::exact } else { output::line };
        print(&lines.join("\n"))?;
    }
    Ok(Exit::Success)
}

/// Encodes a method as one line of JSON.
pub(crate) fn as_json(method: &Method) -> Result<String, CommandError> {
    let json = RawJson::encode(method);
    let json = json.map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
    Ok(json.as_str().to_owned())
}

fn for_programs(method: &Method) -> String {
    let kind = SignatureKind::of(method).name();
    let parts = [&*method.name, kind, &signature(method), &summary(method)];
    parts.map(table::field).join("\t")
}

fn for_people(methods: &[Method]) -> Vec<String> {
    let rows = methods.iter().map(|method| {
        let kind = match SignatureKind::of(method) {
            SignatureKind::Method => "",
            other => other.name(),
        };
        vec![signature(method), kind.to_owned(), summary(method)]
    });
    table::aligned(&rows.collect::<Vec<_>>())
}

fn summary(method: &Method) -> String {
    let text = method.summary.as_deref().or(method.description.as_deref()).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
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
