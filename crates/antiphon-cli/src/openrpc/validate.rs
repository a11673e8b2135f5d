//! Validation of a call against the OpenRPC document of a server: before the call with `--check` or
//! `--schema`, and after an error to give a better hint.

use antiphon::openrpc::{Document, InvalidCallError};
use antiphon::{CallError, Client, Code, Params};
use tokio::time::{Duration, Instant, timeout_at};

use super::did_you_mean::{did_you_mean, similar};
use super::discovery;
use super::signature::signature;
use crate::exit::{CommandError, Exit};

/// The time limit to fetch the document for a hint.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rejects a call that does not match the document.
pub(crate) fn check_call(
    document: &Document,
    method: &str,
    params: Option<&Params>,
) -> Result<(), CommandError> {
    // A document does not list `rpc.discover` itself.
    if method == discovery::METHOD {
        return Ok(());
    }
    document.check_call(method, params).map_err(|misfit| match misfit {
        InvalidCallError::Method(_) => unknown_method(document, method),
        InvalidCallError::Params { .. } => {
            let failure = CommandError::usage(format!("{misfit}; nothing was sent"));
            match signature_hint(document, method) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        other => CommandError::new(Exit::Protocol, other.to_string())
            .hint("without --check the call is sent without validation"),
    })
}

/// The error for a method that the document does not contain, with similar names.
pub(crate) fn unknown_method(document: &Document, method: &str) -> CommandError {
    let similar = similar_methods(document, method);
    CommandError::usage(format!("the server's OpenRPC document has no method `{method}`"))
        .hint(similar.unwrap_or_else(|| "`antiphon list` prints its methods".to_owned()))
}

/// Returns a hint for a call that the server rejected. Without a known document this takes one more
/// call. There is no hint if the server does not reply in time or has no document.
pub(crate) async fn hint(
    client: &Client,
    known: Option<&Document>,
    deadline: Option<Instant>,
    method: &str,
    error: &CallError,
) -> Option<String> {
    let CallError::Rpc(error) = error else { return None };
    let has_hint = [Code::METHOD_NOT_FOUND, Code::INVALID_PARAMS].contains(&error.code);
    if !has_hint || method == discovery::METHOD {
        return None;
    }
    let fetched;
    let document = match known {
        Some(document) => document,
        None => {
            fetched = fetch_in_time(client, deadline).await?;
            &fetched
        }
    };
    match error.code {
        Code::METHOD_NOT_FOUND if document.method(method).is_none() => {
            similar_methods(document, method)
        }
        Code::INVALID_PARAMS => signature_hint(document, method),
        _ => None,
    }
}

/// Fetches the document before the deadline of the call: a timeout here must not replace its error.
async fn fetch_in_time(client: &Client, deadline: Option<Instant>) -> Option<Document> {
    let limit = Instant::now() + PATIENCE;
    let deadline = deadline.map_or(limit, |deadline| deadline.min(limit));
    timeout_at(deadline, discovery::fetch(client)).await.ok()?.ok()
}

fn similar_methods(document: &Document, method: &str) -> Option<String> {
    let names = document
        .methods
        .iter()
        .flat_map(|method| std::iter::once(&*method.name).chain(method.aliases()));
    did_you_mean(&similar(method, names))
}

fn signature_hint(document: &Document, method: &str) -> Option<String> {
    let method = document.method(method)?;
    Some(format!("the signature is {}; see `antiphon describe`", signature(method)))
}
