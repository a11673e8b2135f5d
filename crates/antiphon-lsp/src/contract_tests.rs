//! Every request and notification of the protocol is in the contracts, in its direction.

use std::collections::BTreeSet;
use std::sync::Arc;

use antiphon::{Context, ErrorObject, Router};
use serde_json::Value;

use crate::generated::{language_client, language_server};
use crate::types::{InitializeParams, InitializeResult};
use crate::{LanguageClient, LanguageServer};

struct Bare;

impl LanguageServer for Bare {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }
}

impl LanguageClient for Bare {}

/// The methods that LSP 3.18 adds to the model of 3.17.
const NEW: [(&str, &str); 2] = [
    ("workspace/textDocumentContent", "clientToServer"),
    ("workspace/textDocumentContent/refresh", "serverToClient"),
];

/// Returns the methods in this direction, except for `$/cancelRequest`, which the connection handles.
fn of_the_model(direction: &str) -> BTreeSet<String> {
    let model: Value = serde_json::from_str(include_str!("../meta/methods-3.17.json")).unwrap();
    let listed = ["requests", "notifications"].map(|list| model[list].as_array().unwrap().clone());
    let listed = listed.iter().flatten().map(|method| {
        (method["method"].as_str().unwrap(), method["messageDirection"].as_str().unwrap())
    });
    listed
        .chain(NEW)
        .filter(|(name, to)| *name != "$/cancelRequest" && [direction, "both"].contains(to))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn of_the_contract(router: &Router) -> BTreeSet<String> {
    router.names().map(str::to_owned).collect()
}

#[test]
fn the_server_has_every_method_that_an_editor_calls() {
    let methods = of_the_contract(&language_server::router(&Arc::new(Bare)));
    assert_eq!(methods, of_the_model("clientToServer"));
    assert_eq!(methods.len(), 74);
}

#[test]
fn the_client_has_every_method_that_a_server_calls() {
    let methods = of_the_contract(&language_client::router(&Arc::new(Bare)));
    assert_eq!(methods, of_the_model("serverToClient"));
    assert_eq!(methods.len(), 21);
}
