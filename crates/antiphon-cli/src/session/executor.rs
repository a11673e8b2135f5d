//! Runs one line on a connection.

use antiphon::{Client, RawJson};
use tokio::time::{Duration, timeout};

use super::line::{self, LAST, Line, Step, WaitWords};
use crate::exit::{CommandError, Exit};
use crate::open_connection::OpenConnection;
use crate::output;
use crate::quantity::Span;

/// The outcome of a line.
#[derive(Debug)]
pub(super) enum LineOutcome {
    Result(RawJson),
    /// The line has no result.
    Done,
    /// The session ends.
    Exit,
}

/// Runs a line. `wait_limit` applies to a `wait` without its own time limit. The caller limits the time of calls.
pub(super) async fn run(
    connection: &mut OpenConnection,
    line: &Line,
    wait_limit: Option<Duration>,
) -> Result<LineOutcome, CommandError> {
    let result = match &line.step {
        Step::Call(call) => {
            let call = call.invocation(connection).await?;
            connection.call(call).await?
        }
        Step::Wait(wait) => take(connection, wait, wait_limit).await?,
        Step::Show(word) => line::value(word, &connection.variables)?,
        Step::Open(word) => {
            let path = word.text(&connection.variables)?;
            let identifier = connection.open_document(path.as_ref()).await?;
            let identifier = RawJson::encode(&identifier);
            identifier.map_err(|fault| CommandError::usage(fault.to_string()))?
        }
        other => return run_command(connection, other).await,
    };
    connection.variables.set(LAST, result.clone());
    if let Some(name) = &line.variable {
        connection.variables.set(name, result.clone());
    }
    Ok(LineOutcome::Result(result))
}

/// Runs a line without a result.
async fn run_command(
    connection: &mut OpenConnection,
    step: &Step,
) -> Result<LineOutcome, CommandError> {
    match step {
        Step::Notify(call) => {
            let notification = call.invocation(connection).await?;
            connection.client.caller().post(notification).await?;
        }
        Step::Answer(words) => {
            connection.answers.prepend(line::rule(words, &connection.variables)?);
        }
        Step::Clear => connection.inbox.clear(),
        Step::Variables => show_variables(connection),
        Step::Help => output::note(super::GRAMMAR),
        Step::Exit => return Ok(LineOutcome::Exit),
        Step::Call(_) | Step::Wait(_) | Step::Show(_) | Step::Open(_) => {}
    }
    Ok(LineOutcome::Done)
}

fn show_variables(connection: &OpenConnection) {
    for (name, value) in connection.variables.iter() {
        let text = output::excerpt(&output::visible(&output::on_one_line(value.as_str())));
        output::note(&format!("${name} = {text}"));
    }
}

/// Takes a message from the server. Waits until it arrives.
async fn take(
    connection: &OpenConnection,
    wait: &WaitWords,
    limit: Option<Duration>,
) -> Result<RawJson, CommandError> {
    let members = wait.members(&connection.variables)?;
    let (method, inbox) = (&*wait.method, &connection.inbox);
    let taken = async {
        tokio::select! {
            // A message that arrived before the end of the connection is taken.
            biased;
            params = inbox.take(method, |params| members.fit(params)) => Ok(params),
            failure = lost(&connection.client) => Err(failure.about(&format!("wait {method}"))),
        }
    };
    let Some(limit) = wait.timeout.or(limit) else { return taken.await };
    timeout(limit, taken).await.unwrap_or_else(|_| {
        let what = format!("no {method} from the server within {}", Span(limit));
        let hint = match inbox.take_discarded() {
            0 => format!("`wait {method} 2m` waits longer; -v shows the messages"),
            count => format!(
                "the session discarded {count} unread messages; move this `wait` to an earlier line"
            ),
        };
        Err(CommandError::new(Exit::Timeout, what).hint(hint))
    })
}

/// Waits until the connection is lost.
pub(super) async fn lost(client: &Client) -> CommandError {
    match client.peer() {
        Some(peer) => CommandError::caused(Exit::Transport, &peer.closed().await)
            .about("the connection is lost")
            .hint("check the log of the server; -v shows the messages"),
        None => CommandError::usage("an HTTP server cannot send messages on its own")
            .hint("use ws:// if the server accepts WebSockets on this port"),
    }
}
