//! The login method of [`Auth`](super::Auth).

use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome, Params, RawJson};
use serde::Deserialize;

use super::Credentials;
use super::decision::{INVALID, reject};
use super::session::AuthSession;
use crate::call::Invocation;
use crate::context::Context;
use crate::identity::Identity;
use crate::params;

const TOO_MANY_FAILURES: &str = "too many logins have failed on this connection; connect again";
const NO_CONNECTION: &str = "there is no connection to log in to; set the `Authorization` header";

/// Returns the credentials of a login, if one is allowed on this connection.
pub(super) fn start(call: Invocation, cx: &Context) -> Result<Credentials, ErrorObject> {
    if cx.peer().is_err() {
        return Err(reject(cx, NO_CONNECTION));
    }
    let credentials = credentials(call.params)?;
    if !AuthSession::of(cx.connection()).start_login() {
        return Err(reject(cx, TOO_MANY_FAILURES));
    }
    Ok(credentials)
}

/// Ends a login. `None` stands for invalid credentials.
pub(super) fn finish(cx: &Context, identity: Option<Arc<Identity>>, mark: u64) -> Outcome {
    let Some(identity) = identity else { return Err(reject(cx, INVALID)) };
    AuthSession::of(cx.connection()).logged_in(mark, &identity);
    RawJson::encode(identity.name()).map_err(|_| ErrorObject::internal_error())
}

/// Reads the params of a login.
fn credentials(params: Option<Params>) -> Result<Credentials, ErrorObject> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LoginParams {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        user: Option<String>,
        #[serde(default)]
        password: Option<String>,
    }
    match params::read(params)? {
        LoginParams { token: Some(token), user: None, password: None } => {
            Ok(Credentials::Bearer(token))
        }
        LoginParams { token: None, user: Some(user), password: Some(password) } => {
            Ok(Credentials::Basic { user, password })
        }
        _ => {
            Err(ErrorObject::invalid_params().with_data("log in by a token, or user and password"))
        }
    }
}
