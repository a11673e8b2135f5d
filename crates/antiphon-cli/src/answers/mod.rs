//! Answers to calls from the server, according to rules.
//!
//! The first matching rule decides. The rules of the command line come before those of the dialect. If no rule matches,
//! the answer is -32601. Only `antiphon session --ask` waits: the user answers if no rule matches.

mod defaults;
mod rule;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use antiphon::{BoxFuture, Context, ErrorObject, Handler, Invocation, Outcome, Params};
use clap::Args;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

pub(crate) use self::rule::Rule;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::session::Inbox;

/// The flags of the answers.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Answer calls of this method from the server: METHOD=JSON or METHOD!CODE MESSAGE [repeatable]
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
        Ok(Answers { rules: Arc::new(RwLock::new(rules)), by_hand: None })
    }
}

fn read_file(path: &Path) -> Result<Vec<Rule>, CommandError> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| CommandError::cannot_read(path, &error))?;
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
    /// Whether the user answers calls without a matching rule.
    pub(crate) by_hand: Option<Sender<UnansweredCall>>,
}

/// A call that waits for the user's answer.
#[derive(Debug)]
pub(crate) struct UnansweredCall {
    pub(crate) method: String,
    pub(crate) reply: oneshot::Sender<Outcome>,
}

impl Answers {
    /// Returns whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns whether a call of this method may get a result.
    pub(crate) fn has_result_for(&self, method: &str) -> bool {
        self.by_rule(method, None).map_or(self.by_hand.is_some(), |answer| answer.is_ok())
    }

    /// Adds a rule before all others.
    pub(crate) fn prepend(&self, rule: Rule) {
        self.rules.write().unwrap_or_else(PoisonError::into_inner).insert(0, rule);
    }

    /// Returns the answer of the first matching rule.
    fn by_rule(&self, method: &str, params: Option<&Params>) -> Option<Outcome> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.iter().find(|rule| rule.fits(method)).map(|rule| rule.answer(params))
    }

    /// Queues a call for the user. Returns `None` without `--ask`, or if too many calls wait.
    fn ask(&self, method: &str) -> Option<oneshot::Receiver<Outcome>> {
        let (reply, answer) = oneshot::channel();
        let call = UnansweredCall { method: method.to_owned(), reply };
        self.by_hand.as_ref()?.try_send(call).ok()?;
        Some(answer)
    }
}

/// A message from the server.
pub(crate) type Incoming<'a> = (&'a Invocation, AnswerStatus<'a>);

/// The status of the answer to a message from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerStatus<'a> {
    /// A notification gets no answer.
    NotNeeded,
    Answered(&'a Outcome),
    /// The call waits for the user's answer.
    Awaited,
}

/// The callbacks of a command for messages from the server.
pub(crate) struct Listener {
    pub(crate) observe: Observer,
    pub(crate) by_hand: Option<Sender<UnansweredCall>>,
}

/// A function that observes every message from the server.
pub(crate) type Observer = Box<dyn Fn(Incoming<'_>) + Send + Sync>;

/// The handler of calls from the server. It answers calls, stores every message for the lines of a session, and passes
/// it to the observer.
pub(crate) struct AnsweringHandler {
    pub(crate) answers: Answers,
    pub(crate) inbox: Inbox,
    pub(crate) observe: Option<Observer>,
}

impl AnsweringHandler {
    fn see(&self, message: &Invocation, status: AnswerStatus<'_>) {
        if let Some(observe) = &self.observe {
            observe((message, status));
        }
        self.inbox.push(message);
    }
}

impl Handler for AnsweringHandler {
    fn call(&self, call: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        let method = call.method.as_str();
        let outcome = match self.answers.by_rule(method, call.params.as_ref()) {
            Some(outcome) => outcome,
            None => match self.answers.ask(method) {
                Some(answer) => {
                    self.see(&call, AnswerStatus::Awaited);
                    let none = |_| Err(ErrorObject::method_not_found());
                    return Box::pin(async move { answer.await.unwrap_or_else(none) });
                }
                None => Err(ErrorObject::method_not_found()),
            },
        };
        self.see(&call, AnswerStatus::Answered(&outcome));
        Box::pin(std::future::ready(outcome))
    }

    fn notify(&self, notification: Invocation, _: Context) -> BoxFuture<'static, ()> {
        self.see(&notification, AnswerStatus::NotNeeded);
        Box::pin(std::future::ready(()))
    }
}
