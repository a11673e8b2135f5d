//! Trace contexts: read from headers or members, and continued only by the calls of a handler.

use std::sync::{Arc, Mutex};

use antiphon::layer::{self, Filter, Trace};
use antiphon::{
    CallError, Client, Context, Direction, ErrorObject, Handler, Limits, Responder, Router,
    TappedMessage, TraceContext,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::event_log::EventLog;
use crate::support::{Raw, client, connect, request, serve, wires_and_http, within};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn parent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

/// The trace context of a call, as its handler sees it.
fn trace_of(cx: &Context) -> Value {
    cx.trace().map_or(Value::Null, |trace| json!([trace.to_string(), trace.state()]))
}

fn telling() -> Router {
    Router::new()
        .method("tell", |(): (), cx: Context| async move { Ok(trace_of(&cx)) })
        .notification("note", |(): (), _: Context| async {})
}

/// The trace and the span of a `traceparent`.
fn parts(parent: &Value) -> (String, String) {
    let parts: Vec<_> = parent.as_str().unwrap().split('-').collect();
    assert_eq!((parts.len(), parts[0]), (4, "00"), "{parent}");
    (parts[1].to_owned(), parts[2].to_owned())
}

fn traced(id: u64, members: &str) -> String {
    request(id, "tell", "[]").replace("}", &format!(",{members}}}"))
}

#[tokio::test]
async fn members_set_the_parent_of_their_own_call_only() {
    let (mut raw, _served) = Raw::served(Limits::default(), telling().layer(Trace::new()));
    let parent = parent();
    let mut spans = vec![SPAN.to_owned()];
    for id in 1..=2 {
        raw.send(&traced(id, &format!(r#""traceparent":"{parent}","tracestate":"a=1""#))).await;
        let answer = raw.next().await;
        let (trace, span) = parts(&answer["result"][0]);
        assert_eq!((&*trace, &answer["result"][1]), (TRACE, &json!("a=1")), "{answer}");
        assert!(!spans.contains(&span), "each call is a span of its own");
        spans.push(span);
        for members in ["\"x\":1", "\"traceparent\":\"00-x\"", "\"traceparent\":null"] {
            raw.send(&traced(10 + id, members)).await;
            let (trace, _) = parts(&raw.next().await["result"][0]);
            assert_ne!(trace, TRACE, "{members} is no trace, and the last one is over");
        }
    }
    let entry = traced(1, &format!(r#""traceparent":"{parent}""#));
    raw.send(&format!("[{entry},{}]", request(2, "tell", "[]"))).await;
    let answers = raw.next().await;
    assert_eq!(parts(&answers[0]["result"][0]).0, TRACE);
    assert_ne!(parts(&answers[1]["result"][0]).0, TRACE);
}

#[tokio::test]
async fn without_the_layer_there_is_no_trace() {
    let (mut raw, _served) = Raw::served(Limits::default(), telling());
    raw.send(&traced(1, &format!(r#""traceparent":"{}""#, parent()))).await;
    assert_eq!(raw.next().await["result"], Value::Null);
}

#[tokio::test]
async fn calls_of_a_handler_continue_its_trace() {
    let router = Router::new().method("back", |(): (), cx: Context| async move {
        let here = trace_of(&cx);
        cx.peer()?.notify("noted", ()).await?;
        let peer = cx.peer()?.clone();
        let carried = layer::carry(async move { peer.call::<Value>("carried", ()).await });
        let lost = cx.peer()?.clone();
        tokio::spawn(async move { lost.notify("lost", ()).await }).await.unwrap()?;
        tokio::spawn(carried).await.unwrap()?;
        let (done, is_done) = oneshot::channel();
        let peer = cx.peer()?.clone();
        cx.spawn(async move { done.send(peer.notify("spawned", ()).await).unwrap() })?;
        is_done.await.unwrap()?;
        let mut batch = cx.peer()?.batch();
        batch.notify("batched", ());
        batch.send().await?;
        Ok(here)
    });
    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(Trace::new()));
    let call = request(1, "back", "[]");
    raw.send(&call.replace("}", &format!(r#","traceparent":"{}"}}"#, parent()))).await;
    let noted = raw.next().await;
    let lost = raw.next().await;
    let carried = raw.next().await;
    let id = carried["id"].clone();
    raw.send(&format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#)).await;
    let spawned = raw.next().await;
    let batched = raw.next().await;
    let answer = raw.next().await;
    let here = parts(&answer["result"][0]);
    assert_eq!(here.0, TRACE);
    assert_eq!(parts(&noted["traceparent"]), here, "{noted}");
    assert_eq!(parts(&carried["traceparent"]), here, "{carried}");
    assert_eq!(parts(&spawned["traceparent"]), here, "{spawned}");
    assert_eq!(parts(&batched[0]["traceparent"]), here, "{batched}");
    assert_eq!((&lost["method"], &lost["traceparent"]), (&json!("lost"), &Value::Null));
}

#[tokio::test]
async fn a_trace_continues_from_service_to_service_on_every_wire() {
    for wire in wires_and_http() {
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let last = serve(wire, Limits::default(), telling().layer(Trace::new())).await;
        let saw = sent.clone();
        let onward = client().layer(Trace::new()).tap(move |message: &TappedMessage<'_>| {
            if message.direction == Direction::Sent {
                saw.lock().unwrap().push(String::from_utf8(message.bytes.to_vec()).unwrap());
            }
        });
        let onward: Client = onward.connect(&last).await.unwrap();
        let router = Router::new().method("ask", move |(): (), cx: Context| {
            let onward = onward.clone();
            async move {
                let single: Value = onward.call("tell", ()).await?;
                let mut batch = onward.batch();
                let slots = [batch.call::<Value>("tell", ()), batch.call("tell", ())];
                let mut replies = batch.send().await?;
                let [first, second] = slots.map(|slot| replies.take(slot));
                Ok(vec![trace_of(&cx), single, first?, second?])
            }
        });
        let (mut raw, _served) = Raw::served(Limits::default(), router.layer(Trace::new()));
        let call = request(1, "ask", "[]");
        let members = format!(r#","traceparent":"{}","tracestate":"a=\""}}"#, parent());
        raw.send(&call.replace("}", &members)).await;
        let answer = raw.next().await;
        let places = answer["result"].as_array().unwrap_or_else(|| panic!("{wire}: {answer}"));
        let mut spans: Vec<_> = places
            .iter()
            .map(|place| {
                assert_eq!(place[1], "a=\"", "{wire}: {answer}");
                let (trace, span) = parts(&place[0]);
                assert_eq!(trace, TRACE, "{wire}: {answer}");
                span
            })
            .collect();
        spans.sort_unstable();
        spans.dedup();
        assert_eq!(spans.len(), 4, "{wire}: {answer}");
        // A single call over HTTP sends headers.
        let sent = sent.lock().unwrap();
        assert_eq!(sent[0].contains("traceparent"), !wire.starts_with("http"), "{}", sent[0]);
        assert_eq!(sent[1].matches("traceparent").count(), 2, "{}", sent[1]);
    }
}

#[tokio::test]
async fn a_client_outside_a_trace_begins_one_or_sends_none() {
    let address = serve("memory:*", Limits::default(), telling().layer(Trace::new())).await;
    let plain = connect(&address).await;
    let traced = connect(&address).await.layer(Trace::new());
    let (one, two): (Value, Value) = within(async {
        (traced.call("tell", ()).await.unwrap(), traced.call("tell", ()).await.unwrap())
    })
    .await;
    assert_ne!(parts(&one[0]).0, parts(&two[0]).0);
    assert!(TraceContext::parse(one[0].as_str().unwrap()).unwrap().is_sampled());
    assert!(within(plain.call::<Value>("tell", ()).into_future()).await.is_ok());
}

#[cfg(feature = "http")]
#[tokio::test]
async fn members_take_precedence_over_headers() {
    use crate::support::{dial, rest};
    use antiphon::http::{HeaderName, HeaderValue};
    use tokio::io::AsyncWriteExt as _;

    let address =
        serve("http://127.0.0.1:0", Limits::default(), telling().layer(Trace::new())).await;
    let client = connect(&address).await;
    let ask = |headers: &[(&'static str, &str)]| {
        let call = headers.iter().fold(client.call::<Value>("tell", ()), |call, (name, value)| {
            call.header(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        within(call.into_future())
    };
    let parent = parent();
    let place =
        ask(&[("traceparent", &parent), ("tracestate", "a=1"), ("tracestate", "b=2")]).await;
    let place = place.unwrap();
    let (trace, span) = parts(&place[0]);
    assert_eq!((&*trace, &place[1]), (TRACE, &json!("a=1,b=2")));
    assert_ne!(span, SPAN);
    let twice = ask(&[("traceparent", &parent), ("traceparent", &parent)]).await.unwrap();
    assert_ne!(parts(&twice[0]).0, TRACE, "two parents are none");
    assert_ne!(parts(&ask(&[]).await.unwrap()[0]).0, TRACE, "the next request on this connection");

    let other = parent.replace("0af7", "1af7");
    let body = traced(1, &format!(r#""traceparent":"{other}""#));
    let mut stream = dial(&address).await;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\ntraceparent: {parent}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(answer.contains("1af7") && !answer.contains("0af7"), "{answer}");
}

/// The peer chooses the name of a method, which may contain line breaks and be as long as a message.
#[tokio::test]
async fn a_name_in_the_log_is_one_short_line() {
    let log = EventLog::of("method");
    let _logging = tracing::subscriber::set_default(log.clone());
    let name = format!(r"a\nb{}", "c".repeat(10_000));
    let notification = format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#);
    assert!(Responder::new(Router::new()).answer(notification.clone()).await.is_none());
    let refusing = Router::new().layer(Filter::new().deny(["a*"]));
    assert!(Responder::new(refusing).answer(notification.clone()).await.is_none());
    let logged = log.values();
    assert_eq!(logged.len(), 2, "{logged:?}");
    for name in &logged {
        assert!(name.starts_with(r"a\nbc") && name.len() <= 64, "{name}");
    }
}

/// The caller of a method must not see why it failed. The log shows each reason once.
#[tokio::test]
async fn an_internal_error_is_logged_and_not_sent() {
    let log = EventLog::of("error");
    let _logging = tracing::subscriber::set_default(log.clone());
    let router = Router::new().method("load", |(): (), _cx: Context| async {
        let lost = CallError::Closed("10.0.0.7 is down".into());
        Err::<(), _>(ErrorObject::internal(lost))
    });
    let answer = Responder::new(router).answer(r#"{"jsonrpc":"2.0","method":"load","id":1}"#).await;
    let answer = String::from_utf8(answer.unwrap().to_vec()).unwrap();
    assert!(answer.contains("-32603") && !answer.contains("10.0.0.7"), "{answer}");
    assert_eq!(log.values(), ["the connection is closed: 10.0.0.7 is down"]);
}
