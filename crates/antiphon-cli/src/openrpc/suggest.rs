//! What a shell could complete a command line with, asked of the endpoint that is already on it.
//!
//! It is quick, says nothing of what fails, and starts no process.

use antiphon::openrpc::{Content, Document, Method};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use serde_json::Value;
use tokio::time::{Duration, timeout};

use super::discovery::{self, Schema};
use super::signature::{Kind, is_repeated};
use super::table;
use crate::cli::Cli;
use crate::remote::Remote;

/// Longer than this nobody waits for a completion.
const PATIENCE: Duration = Duration::from_secs(1);

/// Stands for the word that is being completed, to see what the command line takes it for.
const PROBE: &str = "antiphon-suggests-this";

/// What could complete a line that ends at the cursor: each a word, and what it is behind a tab.
pub(crate) async fn suggestions(line: &str) -> Vec<String> {
    let Some(wanted) = Wanted::of(line) else { return Vec::new() };
    match timeout(PATIENCE, wanted.document()).await {
        Ok(Some(document)) => wanted.suggestions(&document),
        _ => Vec::new(),
    }
}

/// What is being completed, and who can tell.
struct Wanted {
    remote: Remote,
    schema: Schema,
    command: String,
    /// The method, where it is its params that are being completed.
    method: Option<String>,
    /// The params before.
    given: Vec<String>,
    /// What there is of the word.
    begun: String,
}

impl Wanted {
    fn of(line: &str) -> Option<Self> {
        let mut words = shell_words::split(line).ok()?;
        let is_new = line.ends_with(char::is_whitespace);
        let begun = if is_new { String::new() } else { words.pop()? };
        if begun.starts_with('-') {
            return None;
        }
        words.push(PROBE.to_owned());
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
        let (command, matches) = matches.subcommand()?;
        let asks = ["call", "notify", "subscribe", "describe"].contains(&command);
        let mut method = asks.then(|| text(matches, "method"))?.pop();
        let mut given = if command == "describe" { Vec::new() } else { text(matches, "params") };
        let is_param = given.pop_if(|last| last == PROBE).is_some();
        if method.take_if(|method| method == PROBE).is_none() && !is_param {
            return None;
        }
        let schema = match command {
            "notify" | "subscribe" => Schema::default(),
            _ => Schema::from_arg_matches(matches).ok()?,
        };
        let remote = Remote::from_arg_matches(matches).ok()?.silent();
        Some(Self { remote, schema, command: command.to_owned(), method, given, begun })
    }

    async fn document(&self) -> Option<Document> {
        match self.schema.read() {
            Ok(Some(document)) => Some(document),
            Ok(None) if !self.remote.starts_a_process() => {
                let client = self.remote.reach(None).await.ok()?;
                discovery::ask(&client).await.ok()
            }
            _ => None,
        }
    }

    fn suggestions(&self, document: &Document) -> Vec<String> {
        match &self.method {
            None => self.methods(document),
            Some(method) => {
                let params = document.method(method).map(|method| &*method.params);
                self.params(params.unwrap_or_default())
            }
        }
    }

    /// Names, each with what it does behind a tab.
    fn methods(&self, document: &Document) -> Vec<String> {
        let fits = |method: &&Method| match &*self.command {
            "subscribe" => Kind::of(method) == Kind::Subscription,
            _ => true,
        };
        let begun = |method: &&Method| method.name.starts_with(&self.begun);
        let found = document.methods.iter().filter(fits).filter(begun);
        let described = found.map(|method| {
            let summary = method.summary.as_deref().unwrap_or_default();
            format!("{}\t{}", table::cell(&method.name), table::cell(summary))
        });
        described.filter(|line| is_plain(line)).collect()
    }

    /// `name=` of a String and `name:=` of anything else, for those that are not given yet. Who has begun
    /// by position goes on so.
    fn params(&self, params: &[Content]) -> Vec<String> {
        let name = |given: &String| given.split_once('=').map(|(name, _)| name.to_owned());
        let Some(given) = self.given.iter().map(name).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let is_given = |name: &str| given.iter().any(|it| it.trim_end_matches(':') == name);
        let missing = params.iter().filter(|param| !is_given(&param.name) && !is_repeated(param));
        let described = missing.map(|param| {
            let is_string = param.schema.get("type").and_then(Value::as_str) == Some("string");
            let sign = if is_string { "=" } else { ":=" };
            let about = param.description.as_deref().or(param.summary.as_deref());
            format!(
                "{}{sign}\t{}",
                table::cell(&param.name),
                table::cell(about.unwrap_or_default())
            )
        });
        described.filter(|line| line.starts_with(&self.begun) && is_plain(line)).collect()
    }
}

/// What was typed for an argument.
fn text(matches: &ArgMatches, name: &str) -> Vec<String> {
    let values = matches.get_raw(name).into_iter().flatten();
    values.map(|value| value.to_string_lossy().into_owned()).collect()
}

/// Whether a name is a word to every shell: a peer's text must not become a command.
fn is_plain(line: &str) -> bool {
    let name = line.split('\t').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@+,".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}
