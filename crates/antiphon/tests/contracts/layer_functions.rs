//! Layers made of async functions, on both sides.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use antiphon::layer::{from_fn, from_outgoing_fn};
use antiphon::{CallError, Code, Context, ErrorObject, Handler, Limits, Params, RawJson, Router};

use crate::support::{connect, serve, wires_and_http, within};

fn adding() -> Router {
    Router::new()
        .method("add", |(a, b): (i64, i64), _: Context| async move { Ok(a + b) })
        .notification("note", |(): (), _: Context| async {})
}

#[tokio::test]
async fn a_function_sees_each_call_notification_and_entry_once() {
    for wire in wires_and_http() {
        let (log, mut entries) = tokio::sync::mpsc::unbounded_channel();
        let seen = adding().layer(from_fn(move |request, next| {
            let log = log.clone();
            async move {
                let (method, is_call) = (request.call.method.clone(), request.cx.id().is_some());
                let outcome = next.run(request).await;
                log.send((method.to_string(), is_call, outcome.is_ok())).unwrap();
                outcome
            }
        }));
        let client = connect(&serve(wire, Limits::default(), seen).await).await;
        let sum = within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap();
        assert_eq!(sum, 3, "{wire}");
        within(client.notify("note", ())).await.unwrap();
        let mut batch = client.batch();
        let sum = batch.call::<i64>("add", (3, 4));
        batch.notify("note", ());
        let absent = batch.call::<i64>("absent", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 7, "{wire}");
        assert!(matches!(replies.take(absent), Err(CallError::Rpc(_))), "{wire}");
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(within(entries.recv()).await.unwrap());
        }
        seen.sort();
        let expected = [
            ("absent", true, false),
            ("add", true, true),
            ("add", true, true),
            ("note", false, true),
            ("note", false, true),
        ];
        let expected = expected.map(|(name, call, ok)| (name.to_owned(), call, ok));
        assert_eq!(seen, expected, "{wire}");
        assert!(entries.try_recv().is_err(), "{wire}");
    }
}

#[tokio::test]
async fn a_function_rejects_answers_and_changes_calls() {
    for wire in wires_and_http() {
        let service = adding().layer(from_fn(|mut request, next| async move {
            if request.call.method == "forbidden" {
                return Err(ErrorObject::unauthorized());
            }
            if request.call.method == "constant" {
                return Ok(RawJson::encode(&5).unwrap());
            }
            request.call.params = Params::encode(&(20, 22)).unwrap();
            next.run(request).await
        }));
        let client = connect(&serve(wire, Limits::default(), service).await).await;
        let call =
            async |method: &str| within(client.call::<i64>(method, (1, 2)).into_future()).await;
        assert_eq!(call("add").await.unwrap(), 42, "{wire}");
        assert_eq!(call("constant").await.unwrap(), 5, "{wire}");
        let refused = call("forbidden").await;
        assert!(
            matches!(&refused, Err(CallError::Rpc(error)) if error.code == Code::UNAUTHORIZED),
            "{wire}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_function_of_a_client_sends_a_call_again() {
    for wire in wires_and_http() {
        let client = connect(&serve(wire, Limits::default(), adding()).await).await;
        let tries = Arc::<Mutex<Vec<String>>>::default();
        let log = tries.clone();
        let client = client.layer(from_outgoing_fn(move |request, next| {
            let log = log.clone();
            async move {
                log.lock().unwrap().push(request.call.method.to_string());
                let mut other = request.clone();
                match next.clone().run(request).await {
                    Err(CallError::Rpc(error)) if error.code == Code::METHOD_NOT_FOUND => {
                        other.call.method = "add".into();
                        next.run(other).await
                    }
                    outcome => outcome,
                }
            }
        }));
        let sum = within(client.call::<i64>("sum", (1, 2)).into_future()).await.unwrap();
        assert_eq!(sum, 3, "{wire}");
        let mut batch = client.batch();
        let sum = batch.call::<i64>("plus", (3, 4));
        batch.notify("note", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 7, "{wire}");
        assert_eq!(*tries.lock().unwrap(), ["sum", "plus", "note"], "{wire}");
    }
}
