//! Dynamic completion: methods and params from the OpenRPC document of the endpoint on the line.
//!
//! It takes at most [`PATIENCE`], reports no errors, starts no process, and runs no line of `--init`.

use antiphon::openrpc::{Content, Document, Method};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use serde_json::Value;
use tokio::time::{Duration, timeout};

use crate::cli::Cli;
use crate::connect::ConnectArgs;
use crate::openrpc::discovery::{self, SchemaArgs};
use crate::openrpc::signature::{SignatureKind, is_repeated};
use crate::openrpc::table;

/// The time limit of a completion.
const PATIENCE: Duration = Duration::from_secs(1);

/// Replaces the word to complete, so that clap shows which argument it is.
const PROBE: &str = "antiphon-completes-this";

/// Returns the candidates for a line that ends at the cursor: a word, a tab and its description.
pub(crate) async fn candidates(line: &str) -> Vec<String> {
    let Some(completion) = Completion::of(line) else { return Vec::new() };
    match timeout(PATIENCE, completion.document()).await {
        Ok(Some(document)) => completion.candidates(&document),
        _ => Vec::new(),
    }
}

/// The word to complete, and the arguments before it.
struct Completion {
    connect: ConnectArgs,
    schema: SchemaArgs,
    command: String,
    /// The method, if the word is one of its params.
    method: Option<String>,
    /// The params before the word.
    typed: Vec<String>,
    /// The part of the word before the cursor.
    prefix: String,
}

impl Completion {
    fn of(line: &str) -> Option<Self> {
        let mut words = shell_words::split(line).ok()?;
        let is_new = line.ends_with(char::is_whitespace);
        let prefix = if is_new { String::new() } else { words.pop()? };
        if prefix.starts_with('-') {
            return None;
        }
        words.push(PROBE.to_owned());
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
        let (command, matches) = matches.subcommand()?;
        let has_method = ["call", "notify", "subscribe", "describe"].contains(&command);
        let mut method = has_method.then(|| text(matches, "method"))?.pop();
        let mut typed = if command == "describe" { Vec::new() } else { text(matches, "params") };
        let is_param = typed.pop_if(|last| last == PROBE).is_some();
        if method.take_if(|method| method == PROBE).is_none() && !is_param {
            return None;
        }
        let schema = match command {
            "notify" | "subscribe" => SchemaArgs::default(),
            _ => SchemaArgs::from_arg_matches(matches).ok()?,
        };
        let connect = ConnectArgs::from_arg_matches(matches).ok()?.for_completion();
        Some(Self { connect, schema, command: command.to_owned(), method, typed, prefix })
    }

    async fn document(&self) -> Option<Document> {
        match self.schema.read() {
            Ok(Some(document)) => Some(document),
            Ok(None) if !self.connect.starts_a_process() => {
                let connection = self.connect.connect(None, None).await.ok()?;
                discovery::fetch(&connection.client).await.ok()
            }
            _ => None,
        }
    }

    fn candidates(&self, document: &Document) -> Vec<String> {
        match &self.method {
            None => self.methods(document),
            Some(method) => {
                let params = document.method(method).map(|method| &*method.params);
                self.params(params.unwrap_or_default())
            }
        }
    }

    /// Method names with their summaries.
    fn methods(&self, document: &Document) -> Vec<String> {
        let fits = |method: &&Method| match &*self.command {
            "subscribe" => SignatureKind::of(method) == SignatureKind::Subscription,
            _ => true,
        };
        let prefix = |method: &&Method| method.name.starts_with(&self.prefix);
        let found = document.methods.iter().filter(fits).filter(prefix);
        let described = found.map(|method| {
            let summary = method.summary.as_deref().unwrap_or_default();
            format!("{}\t{}", table::cell(&method.name), table::cell(summary))
        });
        described.filter(|line| is_plain(line)).collect()
    }

    fn params(&self, method: &[Content]) -> Vec<String> {
        let typed: Vec<_> = self.typed.iter().map(String::as_str).collect();
        let found = params(method, &typed).into_iter();
        let described = found.map(|(name, about)| format!("{name}\t{about}"));
        described.filter(|line| line.starts_with(&self.prefix) && is_plain(line)).collect()
    }
}

/// Returns `name=` for a String and `name:=` for other types, without those already typed, with descriptions.
/// There are none after a param by position.
pub(crate) fn params(params: &[Content], typed: &[&str]) -> Vec<(String, String)> {
    let name = |typed: &&str| typed.split_once('=').map(|(name, _)| name.to_owned());
    let Some(typed) = typed.iter().map(name).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let is_typed = |name: &str| typed.iter().any(|it| it.trim_end_matches(':') == name);
    let missing = params.iter().filter(|param| !is_typed(&param.name) && !is_repeated(param));
    let described = missing.map(|param| {
        let is_string = param.schema.get("type").and_then(Value::as_str) == Some("string");
        let sign = if is_string { "=" } else { ":=" };
        let about = param.description.as_deref().or(param.summary.as_deref());
        (format!("{}{sign}", table::cell(&param.name)), table::cell(about.unwrap_or_default()))
    });
    described.collect()
}

/// Returns the values of an argument as typed.
fn text(matches: &ArgMatches, name: &str) -> Vec<String> {
    let values = matches.get_raw(name).into_iter().flatten();
    values.map(|value| value.to_string_lossy().into_owned()).collect()
}

/// Returns whether every shell reads the name as one plain word. A peer's text must not become a
/// command.
pub(crate) fn is_plain(line: &str) -> bool {
    let name = line.split('\t').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@+,".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}
