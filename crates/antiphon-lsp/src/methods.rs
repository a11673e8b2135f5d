//! The methods of a server by their names on the wire, without the lifecycle.
//!
//! A message of the wrong kind reaches no method: a request gets -32601, and a notification is dropped.
//!
//! Invariant: a notification of the protocol that cannot be decoded is reported. If it would have changed a text
//! document with a readable URI, the server handles `textDocument/didClose` for it, so no method sees an outdated text.
//! A notebook is not closed, because its cells are not known here.

use std::sync::Arc;

use antiphon::{
    BoxFuture, Context, ErrorObject, Handler, Invocation, Outcome, Params, RawJson, Router,
};
use serde::{Deserialize, Serialize};

use crate::changed_ranges;
use crate::faults::{Faults, excerpt};
use crate::generated::language_server::is_request;

/// The methods of the contract and of the application. Cheap to clone: each notification of the contract takes a clone.
#[derive(Clone, Debug)]
pub(crate) struct Methods {
    pub(crate) router: Arc<Router>,
    pub(crate) faults: Faults,
}

impl Methods {
    /// Handles a notification of the contract.
    fn notify_contract(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let Invocation { method, params, .. } = &notification;
        let (method, params) = (method.clone(), params.clone());
        if let Err(reason) = changed_ranges::check(method.as_str(), params.as_ref()) {
            return self.undecodable(method.as_str(), params.as_ref(), &reason, cx);
        }
        let (methods, handled) = (self.clone(), self.router.call(notification, cx.clone()));
        Box::pin(async move {
            // A method of the contract returns nothing, so this is an error of its params.
            if let Err(error) = handled.await {
                let reason = error.to_string();
                methods.undecodable(method.as_str(), params.as_ref(), &reason, cx).await;
            }
        })
    }

    /// Reports a notification that cannot be decoded, and closes the document that it would have changed.
    fn undecodable(
        &self,
        method: &str,
        params: Option<&Params>,
        reason: &str,
        cx: Context,
    ) -> BoxFuture<'static, ()> {
        let is_change = ["textDocument/didOpen", "textDocument/didChange"].contains(&method);
        let document = params.filter(|_| is_change).and_then(document_of);
        let effect = match &document {
            Some(uri) => format!("; {} is closed until the editor opens it again", excerpt(uri)),
            None => String::new(),
        };
        let reason = excerpt(reason);
        tracing::error!(method, reason, "a notification of the editor cannot be decoded{effect}");
        let fault = format!("cannot decode `{method}` of the editor: {reason}{effect}");
        self.faults.report_message(&fault);
        match document.and_then(close) {
            Some(params) => {
                let closed = Invocation::new("textDocument/didClose", Some(params));
                self.router.notify(closed, cx)
            }
            None => Box::pin(std::future::ready(())),
        }
    }
}

impl Handler for Methods {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        if is_request(call.method.as_str()) == Some(false) {
            return Box::pin(std::future::ready(Err(ErrorObject::method_not_found())));
        }
        match call.method.as_str() {
            // Some editors send params. An error would be final, because the server is shut down all the same.
            "shutdown" => self.router.call(Invocation { params: None, ..call }, cx),
            _ => self.router.call(call, cx),
        }
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        match is_request(notification.method.as_str()) {
            Some(false) => self.notify_contract(notification, cx),
            Some(true) => {
                let method = notification.method.as_str();
                tracing::debug!(method, "notification dropped: the method is a request");
                Box::pin(std::future::ready(()))
            }
            None => self.router.notify(notification, cx),
        }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfDocument {
    text_document: Identifier,
}

#[derive(Deserialize, Serialize)]
struct Identifier {
    uri: String,
}

/// Returns the URI of the document that the params name.
fn document_of(params: &Params) -> Option<String> {
    params.as_json().decode::<OfDocument>().ok().map(|params| params.text_document.uri)
}

/// Returns the params that close a document.
fn close(uri: String) -> Option<Params> {
    let params = RawJson::encode(&OfDocument { text_document: Identifier { uri } }).ok()?;
    Params::from_json(params).ok()
}
