//! The questions of an upstream to the user or the model: they go to the client whose call it serves.

use std::sync::Arc;
use std::time::Duration;

use antiphon::{Code, ErrorObject};

use super::open_calls::{OpenCall, OpenCalls, Signal};
use crate::client::{McpClientBuilder, ServerNotification};
use crate::server::AskError;
use crate::types::tasks::EXTENSION;
use crate::types::{ClientCapabilities, ElicitParams, LoggingMessageParams, RootsCapability};

/// How long a client may take to answer which roots it has. No user has to decide about that.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Lets an upstream ask the clients of the bridge. A connection that belongs to one client declares the capabilities of
/// this client, and a connection that clients share declares all.
pub(super) fn ask_clients(
    builder: McpClientBuilder,
    calls: &Arc<OpenCalls>,
    client: Option<&ClientCapabilities>,
) -> McpClientBuilder {
    let mut declared = without_tasks(client.cloned().unwrap_or_default());
    let mut builder = tell_clients(builder, calls);
    if client.is_none_or(|client| client.elicitation.is_some()) {
        builder = elicit(builder, calls.clone());
    }
    if client.is_none_or(|client| client.sampling.is_some()) {
        builder = sample(builder, calls.clone());
    }
    if client.is_none_or(|client| client.roots.is_some()) {
        declared.roots = Some(match client {
            // The client may learn to be asked after the upstream has started, which is a change for the upstream.
            Some(_) => RootsCapability::default().with_list_changed(true),
            None => RootsCapability::default(),
        });
        builder = list_roots(builder, calls.clone());
    }
    builder.capabilities(declared)
}

/// The capabilities of a client that the bridge can have for it: it runs calls itself, not as tasks.
pub(super) fn without_tasks(mut client: ClientCapabilities) -> ClientCapabilities {
    client.tasks = None;
    if let Some(extensions) = &mut client.extensions {
        extensions.remove(EXTENSION);
    }
    client
}

fn elicit(builder: McpClientBuilder, calls: Arc<OpenCalls>) -> McpClientBuilder {
    builder.on_elicit(move |params| {
        let call = current(&calls);
        let calls = calls.clone();
        async move {
            let call = call?;
            let answer = match params {
                ElicitParams::Form(form) => call.cx.elicit(form).await,
                ElicitParams::Url(url) => {
                    calls.elicitations.note(&call, url.elicitation_id.iter());
                    call.cx.elicit_url(url).await
                }
            };
            answer.map_err(refused)
        }
    })
}

fn sample(builder: McpClientBuilder, calls: Arc<OpenCalls>) -> McpClientBuilder {
    builder.on_sample_with_tools(move |params| {
        let call = current(&calls);
        async move { call?.cx.sample(params).await.map_err(refused) }
    })
}

fn list_roots(builder: McpClientBuilder, calls: Arc<OpenCalls>) -> McpClientBuilder {
    builder.on_roots(move || {
        let (call, session) = (current(&calls), calls.session());
        async move {
            let roots = match (call, session) {
                (Err(_), Some(session)) => session.roots(ROOTS_TIMEOUT).await,
                (call, _) => call?.cx.roots().await,
            };
            roots.map_err(refused)
        }
    })
}

/// Passes on what an upstream tells about a call.
fn tell_clients(builder: McpClientBuilder, calls: &Arc<OpenCalls>) -> McpClientBuilder {
    let (logs, completed) = (calls.clone(), calls.clone());
    builder
        .on_log(move |message: LoggingMessageParams| {
            if let Some(call) = logs.current() {
                call.signal(Signal::Log(message));
            }
        })
        .on_notification(move |notification| {
            if let ServerNotification::ElicitationComplete { elicitation_id } = notification {
                completed.complete_elicitation(elicitation_id);
            }
        })
}

/// The call that a question belongs to.
fn current(calls: &OpenCalls) -> Result<OpenCall, ErrorObject> {
    calls.current().ok_or_else(|| {
        let message = "no request of a client is running, so nobody can be asked";
        ErrorObject::new(Code::INVALID_REQUEST.0, message)
    })
}

/// The error that the upstream gets.
fn refused(error: AskError) -> ErrorObject {
    match error {
        AskError::Call { source: antiphon::CallError::Rpc(error), .. } => error,
        AskError::Unsupported { .. } => {
            ErrorObject::method_not_found().with_data(&error.to_string())
        }
        other => ErrorObject::new(Code::INTERNAL_ERROR.0, other.to_string()),
    }
}
