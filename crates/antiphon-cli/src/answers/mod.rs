//! Answers to the calls of a server, by rules.
//!
//! The rules of the command line come first, then those of the dialect, then -32601. The first rule that fits
//! decides. An answer never waits.

mod defaults;
mod rule;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use antiphon::{BoxFuture, Context, ErrorObject, Handler, Invocation, Outcome, Params};
use clap::Args;

pub(crate) use self::rule::Rule;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::session::Inbox;

/// The flags of the answers.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Answer this method of the server: METHOD=RESULT or METHOD!CODE MESSAGE [repeatable]
    #[arg(long, value_name = "RULE", value_parser = Rule::parse, help_heading = "Handshake")]
    answer: Vec<Rule>,
    /// Read answers from this file, one rule per line
    #[arg(long, value_name = "FILE", help_heading = "Handshake", hide_short_help = true)]
    answer_file: Option<PathBuf>,
}

impl AnswerArgs {
    /// Returns all rules of a connection.
    pub(crate) fn read(
        &self,
        dialect: Option<DialectName>,
        root: Option<&Path>,
    ) -> Result<Answers, CommandError> {
        let mut rules = self.answer.clone();
        if let Some(path) = &self.answer_file {
            rules.extend(read_file(path)?);
        }
        rules.extend(defaults::rules(dialect, root)?);
        Ok(Answers { rules: Arc::new(RwLock::new(rules)) })
    }
}

fn read_file(path: &Path) -> Result<Vec<Rule>, CommandError> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandError::usage(format!("cannot read {name}: {error}")))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let rules = lines.map(|(number, line)| {
        Rule::parse(line).map_err(|fault| CommandError::usage(format!("{name}:{number}: {fault}")))
    });
    rules.collect()
}

/// The rules of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    rules: Arc<RwLock<Vec<Rule>>>,
}

impl Answers {
    /// Whether every call gets the error -32601.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether a call of this method gets a result.
    pub(crate) fn covers(&self, method: &str) -> bool {
        self.answer(method, None).is_ok()
    }

    /// Adds a rule before all others.
    pub(crate) fn prepend(&self, rule: Rule) {
        self.rules.write().unwrap_or_else(PoisonError::into_inner).insert(0, rule);
    }

    /// Returns the answer to a call.
    pub(crate) fn answer(&self, method: &str, params: Option<&Params>) -> Outcome {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        match rules.iter().find(|rule| rule.fits(method)) {
            Some(rule) => rule.answer(params),
            None => Err(ErrorObject::method_not_found()),
        }
    }
}

/// What a server sends: a notification, or a call with the answer that it gets.
pub(crate) type Incoming<'a> = (&'a Invocation, Option<&'a Outcome>);

/// Sees every message of the server.
pub(crate) type Observer = Box<dyn Fn(Incoming<'_>) + Send + Sync>;

/// Answers the calls of the server, keeps every message for the lines of a session, and shows it to the
/// observer.
pub(crate) struct AnsweringHandler {
    pub(crate) answers: Answers,
    pub(crate) inbox: Inbox,
    pub(crate) observe: Option<Observer>,
}

impl AnsweringHandler {
    fn see(&self, message: &Invocation, answer: Option<&Outcome>) {
        if let Some(observe) = &self.observe {
            observe((message, answer));
        }
        self.inbox.push(message);
    }
}

impl Handler for AnsweringHandler {
    fn call(&self, call: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        let outcome = self.answers.answer(call.method.as_str(), call.params.as_ref());
        self.see(&call, Some(&outcome));
        Box::pin(std::future::ready(outcome))
    }

    fn notify(&self, notification: Invocation, _: Context) -> BoxFuture<'static, ()> {
        self.see(&notification, None);
        Box::pin(std::future::ready(()))
    }
}
