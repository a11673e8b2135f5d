//! Calls held against what the other side says about itself: before they are sent where it is asked
//! for, and after they were refused, for a better hint.

use antiphon::openrpc::{Document, InvalidCallError};
use antiphon::{CallError, Client, Code, Params};
use tokio::time::{Duration, Instant, timeout_at};

use super::discovery;
use super::nearest::{did_you_mean, nearest};
use super::signature::signature;
use crate::exit::{Exit, Failure};

/// How long a better hint is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Refuses what does not fit.
pub(crate) fn hold(
    document: &Document,
    method: &str,
    params: Option<&Params>,
) -> Result<(), Failure> {
    // No document tells of the method that tells it.
    if method == discovery::METHOD {
        return Ok(());
    }
    document.check_call(method, params).map_err(|misfit| match misfit {
        InvalidCallError::Method(_) => unknown(document, method),
        InvalidCallError::Params { .. } => {
            let failure = Failure::usage(format!("{misfit}; nothing was sent"));
            match takes(document, method) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        other => Failure::new(Exit::Protocol, other.to_string())
            .hint("without --check it is sent as it is"),
    })
}

/// That there is no such method, with those that may be meant.
pub(crate) fn unknown(document: &Document, method: &str) -> Failure {
    Failure::usage(format!("the other side describes no method `{method}`")).hint(
        meant(document, method).unwrap_or_else(|| "`antiphon list` names its methods".to_owned()),
    )
}

/// What the other side says about a call that it has refused. It takes one more call, and is asked
/// only then; where it does not answer in time, or does not describe itself, there is nothing to say.
pub(crate) async fn advice(
    client: &Client,
    known: Option<&Document>,
    deadline: Option<Instant>,
    method: &str,
    error: &CallError,
) -> Option<String> {
    let CallError::Rpc(error) = error else { return None };
    let is_told = [Code::METHOD_NOT_FOUND, Code::INVALID_PARAMS].contains(&error.code);
    if !is_told || method == discovery::METHOD {
        return None;
    }
    let asked;
    let document = match known {
        Some(document) => document,
        None => {
            asked = in_time(client, deadline).await?;
            &asked
        }
    };
    match error.code {
        Code::METHOD_NOT_FOUND if document.method(method).is_none() => meant(document, method),
        Code::INVALID_PARAMS => takes(document, method),
        _ => None,
    }
}

/// The document, if it comes before the call itself would be late: that must stay the call's outcome.
async fn in_time(client: &Client, deadline: Option<Instant>) -> Option<Document> {
    let enough = Instant::now() + PATIENCE;
    let deadline = deadline.map_or(enough, |deadline| deadline.min(enough));
    timeout_at(deadline, discovery::ask(client)).await.ok()?.ok()
}

fn meant(document: &Document, method: &str) -> Option<String> {
    let names = document
        .methods
        .iter()
        .flat_map(|method| std::iter::once(&*method.name).chain(method.aliases()));
    did_you_mean(&nearest(method, names))
}

fn takes(document: &Document, method: &str) -> Option<String> {
    let method = document.method(method)?;
    Some(format!("it is {}; `antiphon describe` tells more", signature(method)))
}
