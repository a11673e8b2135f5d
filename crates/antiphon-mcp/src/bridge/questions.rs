//! The questions of an upstream to the user or the model: they go to the client whose call it serves.

use std::sync::Arc;

use antiphon::{Code, ErrorObject};

use super::open_calls::{OpenCalls, Signal};
use crate::client::McpClientBuilder;
use crate::server::{AskError, RequestContext};
use crate::types::{ElicitParams, LoggingMessageParams};

/// Lets an upstream ask the clients of the bridge.
pub(super) fn ask_clients(builder: McpClientBuilder, calls: &Arc<OpenCalls>) -> McpClientBuilder {
    let (elicits, samples, roots, logs) =
        (calls.clone(), calls.clone(), calls.clone(), calls.clone());
    builder
        .on_elicit(move |params| {
            let cx = client_of(&elicits);
            async move {
                let cx = cx?;
                let answer = match params {
                    ElicitParams::Form(form) => cx.elicit(form).await,
                    ElicitParams::Url(url) => cx.elicit_url(url).await,
                };
                answer.map_err(refused)
            }
        })
        .on_sample_with_tools(move |params| {
            let cx = client_of(&samples);
            async move { cx?.sample(params).await.map_err(refused) }
        })
        .on_roots(move || {
            let cx = client_of(&roots);
            async move { cx?.roots().await.map_err(refused) }
        })
        .on_log(move |message: LoggingMessageParams| {
            if let Some(call) = logs.current() {
                call.signal(Signal::Log(message));
            }
        })
}

fn client_of(calls: &OpenCalls) -> Result<RequestContext, ErrorObject> {
    let call = calls.current().ok_or_else(|| {
        let message = "no request of a client is running, so nobody can be asked";
        ErrorObject::new(Code::INVALID_REQUEST.0, message)
    })?;
    Ok(call.cx)
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
