//! Authentication: without credentials no call reaches a handler, on any transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon::http::HeaderValue;
use antiphon::http::header::AUTHORIZATION;
use antiphon::layer::{Auth, Credentials};
use antiphon::{CallError, Client, Code, Context, Handler, Identity, Limits, Router};
use serde_json::Value;

use crate::support::{Raw, bound, connect, request, serve, wires_and_http, within};

struct Guarded {
    router: Router,
    /// Counts the calls and notifications that reach a handler.
    reached: Arc<AtomicUsize>,
}

fn guarded() -> Guarded {
    let reached = Arc::new(AtomicUsize::new(0));
    let (called, noted) = (reached.clone(), reached.clone());
    let router = Router::new()
        .method("whoami", move |(): (), cx: Context| {
            called.fetch_add(1, Ordering::Relaxed);
            async move { Ok(cx.identity().map(|identity| identity.name().to_owned())) }
        })
        .notification("note", move |(): (), _: Context| {
            noted.fetch_add(1, Ordering::Relaxed);
            async {}
        });
    Guarded { router, reached }
}

fn auth() -> Auth {
    Auth::new().bearer("s3cret", "ada").basic("bob", "pa:ss").login("rpc.login")
}

fn wires() -> Vec<String> {
    let mut wires: Vec<_> = wires_and_http().into_iter().map(str::to_owned).collect();
    if cfg!(all(feature = "unix", unix)) {
        wires.push(format!(
            "unix:{}/auth-{}-*.sock",
            std::env::temp_dir().display(),
            std::process::id()
        ));
    }
    wires
}

fn is_unauthorized(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(error) if error.code == Code::UNAUTHORIZED)
}

async fn who(client: &Client) -> Result<Option<String>, CallError> {
    within(client.call::<Option<String>>("whoami", ()).into_future()).await
}

#[tokio::test]
async fn without_credentials_nothing_reaches_a_handler_on_any_wire() {
    for wire in wires() {
        let Guarded { router, reached } = guarded();
        let address = serve(&wire, Limits::default(), router.layer(auth())).await;
        let client = connect(&address).await;
        assert!(is_unauthorized(&who(&client).await.unwrap_err()), "{wire}");
        let mut batch = client.batch();
        let slots = [batch.call::<Value>("whoami", ()), batch.call("absent", ())];
        batch.notify("note", ());
        let mut replies = within(batch.send()).await.unwrap();
        for slot in slots {
            assert!(is_unauthorized(&replies.take(slot).unwrap_err()), "{wire}");
        }
        // Over HTTP the status reports it. Elsewhere a notification has no response.
        let note = within(client.notify("note", ())).await;
        assert_eq!(note.is_err(), wire.starts_with("http"), "{wire}");
        assert!(is_unauthorized(&who(&client).await.unwrap_err()), "{wire}");
        assert_eq!(reached.load(Ordering::Relaxed), 0, "{wire}");
    }
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_header_says_who_it_is() {
    for wire in ["http://127.0.0.1:0", "ws://127.0.0.1:0"] {
        let Guarded { router, reached } = guarded();
        let address = serve(wire, Limits::default(), router.layer(auth())).await;
        for (value, name) in [
            ("Bearer s3cret", Some("ada")),
            ("Basic Ym9iOnBhOnNz", Some("bob")),
            ("Bearer S3cret", None),
            ("Basic Ym9iOnBhOnNt", None),
            ("Digest s3cret", None),
            ("s3cret", None),
        ] {
            let before = reached.load(Ordering::Relaxed);
            let client = Client::builder().header(AUTHORIZATION, HeaderValue::from_static(value));
            let client = client.connect(&address).await.unwrap();
            match (who(&client).await, name) {
                (Ok(found), Some(name)) => {
                    assert_eq!(found.as_deref(), Some(name), "{wire} {value}");
                }
                (Err(error), None) => {
                    assert!(is_unauthorized(&error), "{wire} {value}: {error}");
                    assert_eq!(reached.load(Ordering::Relaxed), before, "{wire} {value}");
                }
                (found, _) => panic!("{wire} {value}: {found:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_connection_logs_in_and_http_cannot() {
    for wire in wires() {
        let Guarded { router, reached } = guarded();
        let address = serve(&wire, Limits::default(), router.layer(auth())).await;
        let client = connect(&address).await;
        let login =
            |params: Value| within(client.call::<String>("rpc.login", params).into_future());
        assert!(is_unauthorized(&login(serde_json::json!(["wrong"])).await.unwrap_err()), "{wire}");
        assert!(is_unauthorized(&who(&client).await.unwrap_err()), "{wire}");
        if wire.starts_with("http") {
            let refused = login(serde_json::json!(["s3cret"])).await.unwrap_err();
            assert!(is_unauthorized(&refused) && refused.to_string().contains("Authorization"));
            assert_eq!(reached.load(Ordering::Relaxed), 0);
            continue;
        }
        assert_eq!(login(serde_json::json!(["s3cret"])).await.unwrap(), "ada", "{wire}");
        assert_eq!(who(&client).await.unwrap().as_deref(), Some("ada"), "{wire}");
        let bob = serde_json::json!({"user": "bob", "password": "pa:ss"});
        assert_eq!(login(bob).await.unwrap(), "bob", "{wire}");
        assert_eq!(who(&client).await.unwrap().as_deref(), Some("bob"), "{wire}");
        let odd = login(serde_json::json!({"user": "bob"})).await.unwrap_err();
        assert!(matches!(odd, CallError::Rpc(error) if error.code == Code::INVALID_PARAMS));
        // The login applies to this connection only.
        let other = connect(&address).await;
        assert!(is_unauthorized(&who(&other).await.unwrap_err()), "{wire}");
    }
}

#[tokio::test]
async fn what_the_application_knows_of_a_connection_is_enough() {
    for wire in wires_and_http() {
        let Guarded { router, .. } = guarded();
        let server = bound(wire).await;
        let server = server.on_connect(|connection| {
            connection.extensions.insert(Identity::new("by certificate"));
        });
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(router.layer(auth())));
        let client = connect(&address).await;
        assert_eq!(who(&client).await.unwrap().as_deref(), Some("by certificate"), "{wire}");
    }
}

/// A verifier that counts its calls.
fn asked(count: &Arc<AtomicUsize>) -> Auth {
    let count = count.clone();
    Auth::new().allow_anonymous(["open.*"]).verify(move |credentials| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            let Credentials::Bearer(token) = credentials else { return None };
            (token == "good").then(|| Identity::new("eve").with(7_u8))
        }
    })
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_verifier_is_asked_once_a_connection_and_once_a_batch() {
    for (wire, in_all) in [("http://127.0.0.1:0", 3), ("ws://127.0.0.1:0", 1)] {
        let count = Arc::new(AtomicUsize::new(0));
        let Guarded { router, reached } = guarded();
        let router = router.method("fact", |(): (), cx: Context| async move {
            Ok(cx.identity().and_then(|identity| identity.get::<u8>().copied()))
        });
        let address = serve(wire, Limits::default(), router.layer(asked(&count))).await;
        let client =
            Client::builder().header(AUTHORIZATION, HeaderValue::from_static("Bearer good"));
        let client = client.connect(&address).await.unwrap();
        let mut batch = client.batch();
        let slots: Vec<_> = (0..10).map(|_| batch.call::<Option<u8>>("fact", ())).collect();
        let mut replies = within(batch.send()).await.unwrap();
        for slot in slots {
            assert_eq!(replies.take(slot).unwrap(), Some(7), "{wire}");
        }
        assert_eq!(count.load(Ordering::Relaxed), 1, "{wire}");
        assert_eq!(who(&client).await.unwrap().as_deref(), Some("eve"), "{wire}");
        assert_eq!(who(&client).await.unwrap().as_deref(), Some("eve"), "{wire}");
        assert_eq!(count.load(Ordering::Relaxed), in_all, "{wire}");

        let before = reached.load(Ordering::Relaxed);
        let client =
            Client::builder().header(AUTHORIZATION, HeaderValue::from_static("Bearer bad"));
        let client = client.connect(&address).await.unwrap();
        assert!(is_unauthorized(&who(&client).await.unwrap_err()), "{wire}");
        assert_eq!(reached.load(Ordering::Relaxed), before, "{wire}");
    }
}

#[tokio::test]
async fn open_methods_are_open_and_say_who_called_where_it_is_known() {
    let count = Arc::new(AtomicUsize::new(0));
    let router = Router::new().method("open.who", |(): (), cx: Context| async move {
        Ok(cx.identity().map(|identity| identity.name().to_owned()))
    });
    let auth = asked(&count).bearer("known", "ada").login("in");
    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(auth));
    raw.send(&request(1, "open.who", "[]")).await;
    assert_eq!(raw.next().await["result"], Value::Null);
    raw.send(&request(2, "in", "[\"bad\"]")).await;
    assert_eq!(raw.next().await["error"]["code"], Code::UNAUTHORIZED.0);
    raw.send(&request(3, "in", "[\"good\"]")).await;
    assert_eq!(raw.next().await["result"], "eve");
    raw.send(&request(4, "open.who", "[]")).await;
    assert_eq!(raw.next().await["result"], "eve");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// Each entry of the batch is a guess.
#[tokio::test]
async fn a_connection_has_sixteen_guesses() {
    let count = Arc::new(AtomicUsize::new(0));
    let Guarded { router, .. } = guarded();
    let auth = asked(&count).bearer("known", "ada").login("in");
    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(auth));
    for id in 0..20 {
        raw.send(&request(id, "in", "[\"good\"]")).await;
        assert_eq!(raw.next().await["result"], "eve", "who is right may log in at any time");
    }
    count.store(0, Ordering::Relaxed);
    let guesses: Vec<_> = (0..100).map(|id| request(id, "in", "[\"bad\"]")).collect();
    raw.send(&format!("[{}]", guesses.join(","))).await;
    let answers = raw.next().await;
    let refused = |answer: &&Value| answer["error"]["code"] == Code::UNAUTHORIZED.0;
    assert_eq!(answers.as_array().unwrap().iter().filter(refused).count(), 100);
    assert_eq!(count.load(Ordering::Relaxed), 16);
    for (id, token) in [(1, "known"), (2, "good")] {
        raw.send(&request(id, "in", &format!("[\"{token}\"]"))).await;
        let answer = raw.next().await;
        assert!(answer["error"]["data"].as_str().unwrap().contains("too many"), "{answer}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 16);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_header_that_is_refused_is_asked_about_once_a_request() {
    let count = Arc::new(AtomicUsize::new(0));
    let Guarded { router, reached } = guarded();
    let address = serve("http://127.0.0.1:0", Limits::default(), router.layer(asked(&count))).await;
    let client = Client::builder().header(AUTHORIZATION, HeaderValue::from_static("Bearer bad"));
    let client = client.connect(&address).await.unwrap();
    let mut batch = client.batch();
    let slots: Vec<_> = (0..50).map(|_| batch.call::<Value>("whoami", ())).collect();
    let mut replies = within(batch.send()).await.unwrap();
    for slot in slots {
        assert!(is_unauthorized(&replies.take(slot).unwrap_err()));
    }
    assert_eq!([&count, &reached].map(|count| count.load(Ordering::Relaxed)), [1, 0]);
}

/// The inner layer ignores an identity that the outer one accepted by login, header or verifier, even if
/// both were built from a common start.
#[tokio::test]
async fn who_is_let_in_by_one_is_not_let_in_by_another() {
    let base = Auth::new().login("in");
    let admin = base.clone().bearer("ADMIN", "root").login("in.admin");
    let user = base.bearer("USER", "ada").verify(|_| async { Some(Identity::new("eve")) });
    let Guarded { router, reached } = guarded();
    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(admin).layer(user));
    for (token, name) in [("USER", "ada"), ("OTHER", "eve")] {
        raw.send(&request(1, "in", &format!("[\"{token}\"]"))).await;
        assert_eq!(raw.next().await["result"], name);
        raw.send(&request(2, "whoami", "[]")).await;
        assert_eq!(raw.next().await["error"]["code"], Code::UNAUTHORIZED.0);
    }
    assert_eq!(reached.load(Ordering::Relaxed), 0);
    raw.send(&request(3, "in.admin", "[\"ADMIN\"]")).await;
    assert_eq!(raw.next().await["result"], "root");
    raw.send(&request(4, "whoami", "[]")).await;
    assert_eq!(raw.next().await["result"], "root", "the inner one speaks last");
}

#[cfg(feature = "http")]
mod status {
    use super::*;
    use crate::support::{dial, rest};
    use tokio::io::AsyncWriteExt;

    async fn post(address: &str, headers: &str, body: &str) -> String {
        let mut stream = dial(address).await;
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        String::from_utf8(rest(&mut stream).await).unwrap()
    }

    /// Tests the fast path and hyper.
    #[tokio::test]
    async fn several_credentials_are_none() {
        let Guarded { router, reached } = guarded();
        let address = serve("http://127.0.0.1:0", Limits::default(), router.layer(auth())).await;
        let call = request(1, "whoami", "[]");
        for kind in ["", "Connection: close\r\n"] {
            for second in ["s3cret", "other"] {
                let shown = format!(
                    "Authorization: Bearer s3cret\r\nAuthorization: Bearer {second}\r\n{kind}"
                );
                let answer = post(&address, &shown, &call).await;
                assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
                assert!(answer.contains("several"), "{answer}");
            }
        }
        assert_eq!(reached.load(Ordering::Relaxed), 0);
    }

    /// Tests the fast path and hyper, which serves requests with `Connection: close`.
    #[tokio::test]
    async fn a_request_of_which_every_call_is_refused_is_a_401() {
        let Guarded { router, .. } = guarded();
        let router = router.method("open", |(): (), _: Context| async { Ok(1) });
        let address = serve(
            "http://127.0.0.1:0",
            Limits::default(),
            router.layer(auth().allow_anonymous(["open"])),
        )
        .await;
        let call = request(1, "whoami", "[]");
        let note = super::super::support::notification("note", "[]");
        let open = request(2, "open", "[]");
        let (many, mixed) = (format!("[{call},{note}]"), format!("[{call},{open}]"));
        for kind in ["", "Connection: close\r\n"] {
            for (body, status) in
                [(&call, 401), (&note, 401), (&many, 401), (&mixed, 200), (&open, 200)]
            {
                let answer = post(&address, kind, body).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{body}: {answer}");
                let challenged = answer.contains("\r\nwww-authenticate: Bearer, Basic realm=");
                assert_eq!(challenged, status == 401, "{body}: {answer}");
                assert_eq!(answer.contains("-32013"), *body != note && *body != open, "{answer}");
            }
            let known = format!("Authorization: Bearer s3cret\r\n{kind}");
            let answer = post(&address, &known, &call).await;
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("ada"), "{answer}");
        }
    }
}
