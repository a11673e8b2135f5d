//! `initialize`: begins the session of a legacy client.

use antiphon::{BoxFuture, ErrorObject, Outcome, Params, RawJson};

use super::context::RequestContext;
use super::request::{decode_params, invalid_params};
use super::session::Agreement;
use super::session_servers::{NewSession, SessionServers};
use super::{RequestError, tasks, unsupported};
use crate::types::{InitializeParams, InitializeResult, Revision};

/// The largest size of the params of `initialize`, which live as long as the session.
const MAX_INITIALIZE_BYTES: usize = 64 * 1024;

/// Serves `initialize`.
pub(super) fn serve(
    cx: RequestContext,
    params: Option<&Params>,
) -> Result<BoxFuture<'static, Outcome>, ErrorObject> {
    let params = decode_params(bounded(params)?)?;
    Ok(match cx.server().settings().session_servers.clone() {
        None => Box::pin(std::future::ready(initialize(&cx, &params))),
        Some(servers) => Box::pin(initialize_own(servers, cx, params)),
    })
}

fn bounded(params: Option<&Params>) -> Result<Option<&Params>, ErrorObject> {
    let bytes = params.map_or(0, |params| params.as_json().as_str().len());
    match bytes <= MAX_INITIALIZE_BYTES {
        true => Ok(params),
        false => {
            let reason = format!("{bytes} bytes, over the limit of {MAX_INITIALIZE_BYTES}");
            Err(invalid_params("", &reason))
        }
    }
}

fn initialize(cx: &RequestContext, params: &InitializeParams) -> Outcome {
    let server = cx.server();
    let legacy = server.settings().revisions.iter().filter(|revision| !revision.is_modern());
    let Some(latest) = legacy.clone().max() else {
        // The message may be all that a user of a legacy client sees.
        return Err(unsupported(&params.protocol_version, &server.settings().revisions));
    };
    let proposed = Revision::parse(&params.protocol_version);
    let known = proposed.filter(|proposed| legacy.clone().any(|known| known == proposed));
    let revision = known.unwrap_or(*latest);
    let agreement = Agreement::new(revision, params)?;
    let session = cx.session().ok_or_else(ErrorObject::method_not_found)?;
    if !session.begin(agreement, server.listeners()) {
        return Err(already_initialized());
    }
    let info = server.implementation().clone();
    let capabilities = tasks::with_legacy(cx, revision, server.capabilities());
    let mut result = InitializeResult::new(revision, capabilities, info);
    result.instructions.clone_from(&server.settings().instructions);
    RawJson::encode(&result).map_err(ErrorObject::internal)
}

/// Creates the server of a session, and begins the session with it.
async fn initialize_own(
    servers: SessionServers,
    cx: RequestContext,
    params: InitializeParams,
) -> Outcome {
    let session = cx.session().cloned().ok_or_else(ErrorObject::method_not_found)?;
    if session.agreement().is_some() {
        return Err(already_initialized());
    }
    let new = NewSession { initialize: params.clone(), rpc: cx.rpc() };
    let server = servers.create(new).await.map_err(|RequestError(error)| error)?;
    if !session.set_server(server.clone()) {
        return Err(already_initialized());
    }
    initialize(&cx.of_server(&server), &params)
}

fn already_initialized() -> ErrorObject {
    ErrorObject::invalid_request().with_data("the session is initialized already")
}
