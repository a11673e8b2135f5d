//! A client copes with responses in any order, useless responses, and abandoned calls.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{CallError, Client, Context, ErrorChain, Id, Limits, RawJson, Router};

use crate::support::{Raw, answer, client, serve, wires_and_http, within};

#[tokio::test]
async fn responses_may_arrive_in_any_order() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let calls: Vec<_> =
        (0..10u64).map(|n| tokio::spawn(client.call::<u64>("m", (n,)).into_future())).collect();
    let mut questions = Vec::new();
    for _ in 0..10 {
        questions.push(raw.next().await);
    }
    for question in questions.iter().rev() {
        let (id, n) = (&question["id"], &question["params"][0]);
        raw.send(&format!(r#"{{"jsonrpc":"2.0","result":{n},"id":{id}}}"#)).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(within(call).await.unwrap().unwrap(), n as u64);
    }
}

#[tokio::test]
async fn useless_responses_do_not_end_the_connection() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let both = tokio::spawn(client.call::<u64>("a", ()).into_future());
    let id = raw.next().await["id"].clone();
    let other = tokio::spawn(client.call::<u64>("b", ()).into_future());
    let other_id = raw.next().await["id"].clone();
    for useless in [
        r#"{"jsonrpc":"2.0","result":1,"id":999}"#.to_owned(),
        r#"{"jsonrpc":"2.0","result":1,"id":"x"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","result":1}"#.to_owned(),
        r#"{"result":1,"id":999}"#.to_owned(),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","result":1,"error":{{"code":1,"message":"m"}},"id":{id}}}"#),
    ] {
        raw.send(&useless).await;
    }
    // The call with the invalid response fails; the other one continues.
    let broken = within(both).await.unwrap().unwrap_err();
    assert!(
        matches!(&broken, CallError::Protocol(reason) if reason.to_string().contains("must not occur together")),
        "{broken}"
    );
    raw.send(&format!(r#"{{"jsonrpc":"2.0","result":2,"id":{other_id}}}"#)).await;
    assert_eq!(within(other).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn an_error_without_id_fails_the_only_pending_call() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let call = tokio::spawn(client.call::<u64>("a", ()).into_future());
    raw.next().await;
    raw.send(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":null}"#).await;
    assert!(
        matches!(within(call).await.unwrap(), Err(CallError::Rpc(error)) if error.code.0 == -32600)
    );
}

#[tokio::test]
async fn a_response_after_the_timeout_is_ignored() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let call = client.call::<u64>("a", ()).timeout(Duration::from_millis(10));
    assert!(matches!(within(call.into_future()).await, Err(CallError::TimedOut(_))));
    let id = raw.next().await["id"].clone();
    raw.send(&format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#)).await;
    let next = tokio::spawn(client.call::<u64>("b", ()).into_future());
    let id = raw.next().await["id"].clone();
    raw.send(&format!(r#"{{"jsonrpc":"2.0","result":2,"id":{id}}}"#)).await;
    assert_eq!(within(next).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn dropped_calls_free_their_capacity() {
    let limits = Limits { pending_calls: 2, ..Limits::default() };
    let (mut raw, client) = Raw::served(limits, Router::new());
    for _ in 0..10 {
        let call = tokio::spawn(client.call::<u64>("a", ()).into_future());
        raw.next().await;
        call.abort();
        let _ = call.await;
    }
    let held: Vec<_> =
        (0..2).map(|_| tokio::spawn(client.call::<u64>("a", ()).into_future())).collect();
    raw.next().await;
    raw.next().await;
    let refused = within(client.call::<u64>("a", ()).into_future()).await.unwrap_err();
    assert!(matches!(refused, CallError::Refused(_)), "{refused}");
    drop(held);
}

#[tokio::test]
async fn a_call_may_have_a_chosen_id() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    for id in ["\"abc\"", "1.50", "-7"] {
        let chosen = Id::from_json(RawJson::parse(id).unwrap()).unwrap();
        let call = tokio::spawn(client.call::<u64>("a", ()).id(chosen).into_future());
        assert_eq!(
            raw.next().await["id"].to_string(),
            serde_json::from_str::<serde_json::Value>(id).unwrap().to_string()
        );
        raw.send(&format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#)).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
    }
}

#[tokio::test]
async fn params_that_are_not_structured_are_not_sent() {
    let (_raw, client) = Raw::served(Limits::default(), Router::new());
    let error = client.call::<()>("a", 5).await.unwrap_err();
    assert!(matches!(error, CallError::Encode(_)));
    assert!(matches!(client.notify("a", "text").await, Err(CallError::Encode(_))));
}

#[tokio::test]
async fn the_end_of_a_connection_fails_its_calls() {
    let (raw, client) = Raw::served(Limits::default(), Router::new());
    let call = tokio::spawn(client.call::<u64>("a", ()).into_future());
    tokio::task::yield_now().await;
    drop(raw);
    assert!(matches!(within(call).await.unwrap(), Err(CallError::Interrupted(_))));
    assert!(matches!(client.notify("a", ()).await, Err(CallError::Closed(_))));
    assert!(matches!(client.call::<u64>("a", ()).await, Err(CallError::Closed(_))));
}

#[tokio::test]
async fn errors_name_the_address_and_the_cause() {
    for (endpoint, text) in [
        ("tcp://127.0.0.1:1", "cannot connect to tcp://127.0.0.1:1"),
        ("unix:/nonexistent/a.sock", "cannot connect to unix:/nonexistent/a.sock"),
        ("memory:nobody", "cannot connect to memory:nobody"),
        ("stdio:", "cannot connect to stdio:"),
        ("exec:/nonexistent/program", "cannot connect to exec:/nonexistent/program"),
        ("nonsense", "`nonsense` is not an endpoint"),
    ] {
        let error = Client::connect(endpoint).await.unwrap_err();
        assert!(ErrorChain(&error).to_string().starts_with(text), "{error}");
    }
}

#[tokio::test]
async fn a_response_over_the_limit_fails_its_call_with_the_reason() {
    let echo = || {
        Router::new()
            .method("big", |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) })
    };
    let mut endpoints = vec!["tcp://127.0.0.1:0", "tcp+header://127.0.0.1:0"];
    if cfg!(feature = "ws") {
        endpoints.extend(["http://127.0.0.1:0", "ws://127.0.0.1:0"]);
    }
    for endpoint in endpoints {
        let address = serve(endpoint, Limits::default(), echo()).await;
        let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
        let client = Client::builder().limits(limits).connect(&address).await.unwrap();
        let error = within(client.call::<String>("big", (5_000,)).into_future()).await.unwrap_err();
        assert!(ErrorChain(&error).to_string().contains("1000 bytes"), "{endpoint}: {error}");
        if !endpoint.starts_with("ws") {
            assert_eq!(client.call::<String>("big", (1,)).await.unwrap(), "x");
        }
    }
}

#[tokio::test]
async fn a_response_nested_too_deeply_fails_its_call() {
    let deep = || {
        Router::new().method("nest", |(depth,): (usize,), _cx: Context| async move {
            let nested = "[".repeat(depth) + &"]".repeat(depth);
            Ok(RawJson::parse(nested).unwrap())
        })
    };
    for endpoint in wires_and_http() {
        let address = serve(endpoint, Limits::default(), deep()).await;
        let limits = Limits { depth: 10, ..Limits::default() };
        let client = client().limits(limits).connect(&address).await.unwrap();
        let error = within(client.call::<RawJson>("nest", (11,)).into_future()).await.unwrap_err();
        assert!(!matches!(error, CallError::Closed(_)), "{endpoint}: {error}");
        let result = within(client.call::<RawJson>("nest", (5,)).into_future()).await.unwrap();
        assert_eq!(result.as_str(), "[[[[[]]]]]");
    }
}

#[tokio::test]
async fn an_unreadable_response_to_one_of_many_calls_fails_them_all() {
    // The call of the response is unknown, and no call may wait forever.
    let limits = Limits { depth: 10, ..Limits::default() };
    let (ours, theirs) = antiphon::transport::memory::pair();
    let client = Client::builder().limits(limits).over(theirs);
    let mut raw = Raw(ours);
    let calls: Vec<_> =
        (0..3).map(|_| tokio::spawn(client.call::<RawJson>("a", ()).into_future())).collect();
    let mut id = serde_json::Value::Null;
    for _ in 0..3 {
        id = raw.next().await["id"].clone();
    }
    raw.send(&answer(&id, &("[".repeat(20) + &"]".repeat(20)))).await;
    for call in calls {
        within(call).await.unwrap().unwrap_err();
    }
}

#[tokio::test]
async fn chosen_ids_and_generated_ids_never_collide() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let chosen = |id: String| Id::from_json(RawJson::parse(id).unwrap()).unwrap();
    let own = tokio::spawn(client.call::<u64>("own", ()).into_future());
    let own_id = raw.next().await["id"].clone();
    // An id that is already pending is rejected, in any spelling.
    for taken in [own_id.to_string(), format!("{own_id}.0")] {
        let call = client.call::<u64>("chosen", ()).id(chosen(taken.clone()));
        let refused = within(call.into_future()).await.unwrap_err();
        assert!(matches!(refused, CallError::Refused(_)), "{taken}: {refused}");
    }
    // Generated ids avoid the chosen ones.
    let ahead: Vec<_> = (2..6)
        .map(|id| tokio::spawn(client.call::<u64>("chosen", ()).id(id.into()).into_future()))
        .collect();
    let mut ids = vec![own_id];
    for _ in 2..6 {
        ids.push(raw.next().await["id"].clone());
    }
    let more: Vec<_> =
        (0..6).map(|_| tokio::spawn(client.call::<u64>("own", ()).into_future())).collect();
    for _ in 0..6 {
        let id = raw.next().await["id"].clone();
        assert!(!ids.contains(&id), "{id}");
        ids.push(id);
    }
    for (n, id) in ids.iter().enumerate().rev() {
        raw.send(&answer(id, &n.to_string())).await;
    }
    for (n, call) in [own].into_iter().chain(ahead).chain(more).enumerate() {
        assert_eq!(within(call).await.unwrap().unwrap(), n as u64);
    }
}

#[tokio::test]
async fn a_response_nested_too_deeply_fails_the_call_of_a_client_with_a_handler() {
    let limits = Limits { depth: 10, ..Limits::default() };
    let (mut raw, client) = Raw::served(limits, Router::new());
    let call = tokio::spawn(client.call::<RawJson>("a", ()).into_future());
    let id = raw.next().await["id"].clone();
    raw.send(&answer(&id, &("[".repeat(20) + &"]".repeat(20)))).await;
    within(call).await.unwrap().unwrap_err();
}

#[tokio::test]
async fn the_response_may_spell_a_chosen_id_as_a_float() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let own = tokio::spawn(client.call::<u64>("a", ()).into_future());
    raw.next().await;
    raw.send(r#"{"jsonrpc":"2.0","result":1,"id":1.0}"#).await;
    assert_eq!(within(own).await.unwrap().unwrap(), 1);
    let call = tokio::spawn(client.call::<u64>("a", ()).id(7.into()).into_future());
    raw.next().await;
    raw.send(r#"{"jsonrpc":"2.0","result":1,"id":7.0}"#).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_client_of_a_peer_has_this_peer_and_does_not_own_its_connection() {
    let (mut raw, owner) = Raw::served(Limits::default(), Router::new());
    let peer = owner.peer().unwrap();
    let client = Client::from(&peer).nested("a.");
    let its_peer = client.peer().unwrap();
    assert_eq!(its_peer.connection().id(), peer.connection().id());
    its_peer.notify("first", ()).await.unwrap();
    assert_eq!(within(raw.next()).await["method"], "first");
    within(client.clone().close()).await;
    client.notify("second", ()).await.unwrap();
    assert_eq!(within(raw.next()).await["method"], "a.second");
    // The client holds the peer, but the connection closes with its owner.
    drop(owner);
    within(its_peer.closed()).await;
    let error = client.notify("third", ()).await.unwrap_err();
    assert!(matches!(error, CallError::Closed(_)), "{error}");
}
