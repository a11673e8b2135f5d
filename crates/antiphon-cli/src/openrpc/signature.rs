//! The signature of a method in one line.

use antiphon::openrpc::{Content, Method, ParamStructure};
use serde_json::Value;

/// The kind of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureKind {
    Method,
    /// Has no result.
    Notification,
    /// Starts a subscription.
    Subscription,
}

impl SignatureKind {
    pub(crate) fn of(method: &Method) -> Self {
        match &method.result {
            _ if method.rest.contains_key("x-subscription") => Self::Subscription,
            Some(_) => Self::Method,
            None => Self::Notification,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Notification => "notification",
            Self::Subscription => "subscription",
        }
    }
}

/// Formats `subtract(minuend, subtrahend)`. An optional param is `count?`, a repeated one `number...`,
/// and braces mean by name only.
pub(crate) fn signature(method: &Method) -> String {
    let params: Vec<_> = method.params.iter().map(param).collect();
    let params = params.join(", ");
    match method.param_structure {
        ParamStructure::ByName if !params.is_empty() => format!("{}({{{params}}})", method.name),
        _ => format!("{}({params})", method.name),
    }
}

fn param(param: &Content) -> String {
    let mark = match param.required {
        _ if is_repeated(param) => "...",
        true => "",
        false => "?",
    };
    format!("{}{mark}", param.name)
}

/// Returns whether a param may be repeated. OpenRPC cannot express this, so `x-repeated` is our
/// extension.
pub(crate) fn is_repeated(param: &Content) -> bool {
    param.rest.get("x-repeated") == Some(&Value::Bool(true))
}
