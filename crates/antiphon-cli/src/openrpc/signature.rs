//! A method in one line: what it is called, and what it takes.

use antiphon::openrpc::{Content, Method, ParamStructure};
use serde_json::Value;

/// What a method is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Method,
    /// It gives nothing back.
    Notification,
    /// It begins a subscription.
    Subscription,
}

impl Kind {
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

/// `subtract(minuend, subtrahend)`; what may be left out as `count?`, any number as `number...`, and in
/// braces what is taken by name only.
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

/// OpenRPC has no word for a list of any length: this is ours.
pub(crate) fn is_repeated(param: &Content) -> bool {
    param.rest.get("x-repeated") == Some(&Value::Bool(true))
}
