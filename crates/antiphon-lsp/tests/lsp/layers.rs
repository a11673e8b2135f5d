//! `tower` layers around the methods of a server.

use std::sync::{Arc, Mutex};

use antiphon::layer::Filter;
use antiphon::{Client, Context, Dialect, PerConnection, RawJson, Router};
use antiphon_lsp::LanguageService;
use serde_json::json;

use crate::support::{Bare, code};

#[tokio::test]
async fn a_layer_is_around_the_methods_and_inside_of_the_lifecycle() {
    let noted: Arc<Mutex<Vec<&str>>> = Arc::default();
    let note = noted.clone();
    let own = Router::new().method("own/denied", |(): (), _: Context| async { Ok(()) }).method(
        "own/noted",
        move |(): (), _: Context| {
            note.lock().unwrap().push("noted");
            async { Ok(()) }
        },
    );
    let service = move |_: &_, peer| {
        LanguageService::for_peer(peer, |_| {
            let filter = Filter::new().deny(["own/denied"]);
            LanguageService::new(Bare).layer(filter).merge(own.clone())
        })
    };
    let builder = Client::builder().dialect(Dialect::lsp());
    let client = builder.in_process(PerConnection::new(service));
    let call = async |method: &str| code(client.call::<RawJson>(method, ()).await);
    assert_eq!(call("own/denied").await, -32002);
    let initialized = client.call::<RawJson>("initialize", json!({"capabilities": {}}));
    assert_eq!(code(initialized.await), 0);
    assert_eq!(call("own/denied").await, -32601);
    assert_eq!(call("own/noted").await, 0);
    assert_eq!(*noted.lock().unwrap(), ["noted"]);
}
