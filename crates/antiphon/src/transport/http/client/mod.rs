//! The calling side: one POST a message.
//!
//! Here is what a POST means to JSON-RPC. What it is on the wire is [`Http1`]'s or [`Http2`]'s.

mod chunked;
mod client_service;
mod connection;
mod dial;
mod fault;
mod head;
mod http1;
mod http2;
#[cfg(feature = "tls")]
mod https;
mod pool;
mod request;
mod response;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon_core::{
    Entries, Id, Limits, Message, Outcome, Payload, RawJson, Response, Rules, decode, encode,
};
use bytes::{BufMut, BytesMut};
use http::header::HOST;
use http::{HeaderMap, StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;

pub use self::client_service::{HttpClientService, Posts};
pub(crate) use self::client_service::{Layering, layering};
use self::dial::Plain;
use self::http1::Http1;
use self::http2::Http2;
#[cfg(feature = "tls")]
use self::https::Https;
use self::request::{Draft, RequestHead, merged, with_defaults};
use crate::BoxFuture;
use crate::call::Watch;
use crate::call::{BatchEntry, CallError, Caller, Invocation};
use crate::connection::Connection;
use crate::endpoint::Authority;
use crate::subscription::Follower;
use crate::tap::{Direction, Taps};
use crate::trace;
#[cfg(feature = "tls")]
use crate::transport::tls::TlsClient;

/// How to call.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) limits: &'a Limits,
    /// By HTTP/2 and not otherwise.
    pub(crate) http2: bool,
    /// By TLS.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<&'a TlsClient>,
    /// What stands around each request.
    pub(crate) layers: &'a [Layering],
}

/// A server that is called by POST.
pub(crate) struct HttpCaller {
    wire: Arc<HttpWire>,
    /// Where layers stand around each request.
    layered: Option<HttpClientService>,
    rules: Rules,
    next: AtomicU64,
    tap: Taps,
    /// The facts that the tap is shown.
    facts: Connection,
}

/// The way there.
struct HttpWire {
    version: Version,
    uri: Uri,
    /// What every request says, for who sees each as a whole.
    headers: HeaderMap,
    /// The Host among them is not ours.
    has_host: bool,
}

/// What is spoken with it.
enum Version {
    One(Http1<Plain>),
    /// Without asking: over cleartext there is no way to ask.
    Two(Box<Http2<HttpConnector>>),
    /// What the server picks.
    #[cfg(feature = "tls")]
    Secure(Box<Https>),
}

impl HttpCaller {
    /// Connects to nothing yet: the first call does.
    pub(crate) fn new(
        authority: &Authority,
        path: &str,
        settings: &Settings<'_>,
        tap: Taps,
    ) -> io::Result<Self> {
        let Settings { headers, limits, http2, layers, .. } = *settings;
        let uri = |scheme: &str| {
            format!("{scheme}://{authority}{path}").parse::<Uri>().map_err(io::Error::other)
        };
        let rules = limits.rules();
        let new = |version, uri: Uri| {
            let uri_is_secure = uri.scheme_str() == Some("https");
            let has_host = headers.contains_key(HOST);
            let headers = with_defaults(&uri, headers);
            let wire = Arc::new(HttpWire { version, uri, headers, has_host });
            let layered = client_service::layered(layers, &wire);
            let facts = Connection::new(if uri_is_secure { "https" } else { "http" });
            Self { wire, layered, rules, next: AtomicU64::new(1), tap, facts }
        };
        #[cfg(feature = "tls")]
        if let Some(tls) = settings.tls {
            let uri = uri("https")?;
            let https = Https::new(authority, &uri, tls, settings)?;
            return Ok(new(Version::Secure(Box::new(https)), uri));
        }
        let uri = uri("http")?;
        let connector = dial::connector(limits);
        let version = if http2 {
            Version::Two(Box::new(Http2::new(connector, uri.clone(), headers, limits)))
        } else {
            Version::One(Http1::new(Plain::new(connector, uri.clone()), &uri, headers, limits))
        };
        Ok(new(version, uri))
    }

    fn next_id(&self) -> Id {
        self.next.fetch_add(1, Ordering::Relaxed).into()
    }

    fn see(&self, direction: Direction, message: &[u8]) {
        self.tap.message(direction, message, &self.facts);
    }

    /// A draft of a request, with headers of its own where these are some.
    fn draft(&self, message: usize, headers: Option<&HeaderMap>) -> Draft {
        match (&self.wire.version, headers) {
            (_, headers) if self.layered.is_some() => Draft::with(message, headers),
            (Version::One(http), None) => http.draft(message),
            #[cfg(feature = "tls")]
            (Version::Secure(http), None) => http.draft(message),
            (Version::Two(_), headers) => Draft::with(message, headers),
            (_, Some(own)) => {
                let headers = merged(&self.wire.headers, own);
                RequestHead::new(&self.wire.uri, &headers).own_draft(message, own)
            }
        }
    }

    /// The same for one call, whose place in a trace is told by headers.
    fn draft_call(&self, call: &Invocation) -> Draft {
        let Some(trace) = call.trace() else {
            return self.draft(call.about_len(), call.headers());
        };
        let mut headers = call.headers().cloned().unwrap_or_default();
        trace::write_headers(trace, &mut headers);
        self.draft(call.about_len(), Some(&headers))
    }

    /// One POST: the status, and the body within its limit.
    async fn post_message(&self, draft: Draft) -> Result<response::Response, CallError> {
        self.see(Direction::Sent, draft.message());
        let posted = match (&self.layered, &self.wire.version) {
            (Some(layered), _) => return self.post_layered(layered, draft).await,
            (None, Version::One(http)) => http.post(draft).await,
            (None, Version::Two(http)) => Box::pin(http.post(draft)).await,
            #[cfg(feature = "tls")]
            (None, Version::Secure(http)) => Box::pin(http.post(draft)).await,
        };
        let response = posted.map_err(|fault| fault.at(&self.wire.uri))?;
        self.see(Direction::Received, &response.body);
        Ok(response)
    }

    /// The same through the layers.
    async fn post_layered(
        &self,
        layered: &HttpClientService,
        draft: Draft,
    ) -> Result<response::Response, CallError> {
        let response = layered.post(self.wire.request(draft)).await?;
        self.see(Direction::Received, response.body());
        Ok(response::Response::new(response.status(), response.into_body()))
    }

    /// What a body that answers a call holds; other statuses may carry JSON-RPC too.
    async fn exchange(&self, draft: Draft) -> Result<Payload, CallError> {
        let response = self.post_message(draft).await?;
        let (status, body) = (response.status, &response.body);
        if status == StatusCode::NO_CONTENT || (status.is_success() && body.is_empty()) {
            return Err(CallError::Protocol(format!("no answer to a call (HTTP {status})")));
        }
        let payload = decode(body, &self.rules);
        if !status.is_success() && !is_answer(&payload) {
            return Err(self.refused(status, body));
        }
        Ok(payload)
    }

    /// A status that says no, and what the body says to it.
    fn refused(&self, status: StatusCode, body: &[u8]) -> CallError {
        let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
        let uri = fault::named(&self.wire.uri);
        let answer = format!("{uri} answered HTTP {status}: {}", text.trim());
        CallError::Transport(answer.trim_end_matches([':', ' ']).to_owned())
    }
}

impl Caller for HttpCaller {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            let id = call.id.clone().unwrap_or_else(|| self.next_id());
            let mut draft = self.draft_call(&call);
            encode_entry(&call, Some(&id), &mut draft.text);
            match self.exchange(draft).await? {
                Payload::One(Ok(Message::Response(response))) => answer_to(&id, response),
                Payload::One(Err(invalid)) => Err(CallError::unreadable(&invalid)),
                _ => Err(CallError::Protocol("the answer is no Response".to_owned())),
            }
        })
    }

    fn send_watched(&self, _: Invocation, _: Watch) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoWayBack("http"))))
    }

    fn subscribe(&self, _: Invocation, _: Follower) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoWayBack("http"))))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let mut draft = self.draft_call(&notification);
            encode_entry(&notification, None, &mut draft.text);
            let response = self.post_message(draft).await?;
            let (status, body) = (response.status, &response.body);
            if status.is_success() && body.is_empty() {
                return Ok(());
            }
            match decode(body, &self.rules) {
                Payload::One(Ok(Message::Response(Response { outcome: Err(error), .. }))) => {
                    Err(CallError::Rpc(error))
                }
                _ if status.is_success() => {
                    tracing::warn!(%status, "a notification was answered");
                    Ok(())
                }
                _ => Err(self.refused(status, body)),
            }
        })
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async move {
            let (draft, ids) = self.encode_batch(&entries);
            if ids.is_empty() {
                self.post_message(draft).await?;
                return Ok(Vec::new());
            }
            match self.exchange(draft).await? {
                Payload::Batch(answers) => Ok(in_order(&ids, answers)),
                // The whole batch was refused, and so was each of its calls.
                Payload::One(Ok(Message::Response(Response { outcome: Err(error), .. }))) => {
                    Ok(ids.iter().map(|_| Err(CallError::Rpc(error.clone()))).collect())
                }
                Payload::One(Err(invalid)) => Err(CallError::unreadable(&invalid)),
                Payload::One(Ok(_)) => {
                    Err(CallError::Protocol("the answer to a batch is no Array".to_owned()))
                }
            }
        })
    }
}

impl HttpCaller {
    /// The ids of a batch follow each other: the answers are placed by them.
    fn encode_batch(&self, entries: &[BatchEntry]) -> (Draft, Vec<Id>) {
        let calls =
            entries.iter().filter(|entry| matches!(entry, BatchEntry::Call(_))).count() as u64;
        let first = self.next.fetch_add(calls, Ordering::Relaxed);
        let ids: Vec<Id> = (first..first + calls).map(Id::from).collect();
        let mut own = ids.iter();
        let headers = all_headers(entries);
        let mut draft = self.draft(entries.iter().map(about_len).sum(), headers.as_ref());
        let out = &mut draft.text;
        let mut before = b'[';
        for entry in entries {
            out.put_u8(std::mem::replace(&mut before, b','));
            match entry {
                BatchEntry::Call(call) => encode_traced(call, own.next(), out),
                BatchEntry::Notification(call) => encode_traced(call, None, out),
            }
        }
        out.put_u8(b']');
        (draft, ids)
    }
}

/// The headers of all entries; of one name, those of the last entry that has it.
fn all_headers(entries: &[BatchEntry]) -> Option<HeaderMap> {
    let headers = entries.iter().filter_map(|entry| {
        let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
        call.headers()
    });
    headers.fold(None, |all, one| Some(merged(&all.unwrap_or_default(), one)))
}

fn about_len(entry: &BatchEntry) -> usize {
    let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
    call.about_len()
}

/// An entry of a batch, whose place in a trace only members can tell.
fn encode_traced(call: &Invocation, id: Option<&Id>, out: &mut BytesMut) {
    call.encode_head(out);
    encode_rest(id, out);
}

fn encode_entry(call: &Invocation, id: Option<&Id>, out: &mut BytesMut) {
    encode::call_head(&call.method, call.params.as_ref(), out);
    encode_rest(id, out);
}

fn encode_rest(id: Option<&Id>, out: &mut BytesMut) {
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id.as_bytes());
    }
    out.put_u8(b'}');
}

fn is_answer(payload: &Payload) -> bool {
    matches!(payload, Payload::Batch(_) | Payload::One(Ok(Message::Response(_))))
}

/// The same id, also where a peer that keeps numbers as floats has written `1.0` for `1`.
fn is_same(ours: &Id, theirs: &Id) -> bool {
    ours == theirs || (ours.as_u64().is_some() && ours.as_u64() == theirs.as_u64())
}

fn answer_to(id: &Id, response: Response) -> Result<RawJson, CallError> {
    match (is_same(id, &response.id), response.outcome) {
        (true, outcome) => outcome.map_err(CallError::Rpc),
        // The server could not read the id; the error is about this call all the same.
        (false, Err(error)) if response.id == Id::Null => Err(CallError::Rpc(error)),
        (false, _) => {
            let theirs = response.id;
            Err(CallError::Protocol(format!("the answer is for id {theirs}, the call had {id}")))
        }
    }
}

/// The answers in the order of the calls, each found by its id (section 6).
fn in_order(ids: &[Id], answers: Entries) -> Vec<Result<RawJson, CallError>> {
    let mut found: Vec<Option<Result<RawJson, CallError>>> = ids.iter().map(|_| None).collect();
    let first = ids.first().and_then(Id::as_u64).unwrap_or_default();
    let place = |id: &Id| {
        let at = usize::try_from(id.as_u64()?.checked_sub(first)?).ok()?;
        (at < ids.len()).then_some(at)
    };
    for answer in answers {
        let (id, result): (Id, Result<RawJson, CallError>) = match answer {
            Ok(Message::Response(Response { id, outcome })) => (id, outcome_of(outcome)),
            Ok(_) => continue,
            Err(invalid) => (invalid.id.clone(), Err(CallError::unreadable(&invalid))),
        };
        match place(&id) {
            Some(at) => found[at] = Some(result),
            None => tracing::warn!(%id, "an answer that nobody asked for"),
        }
    }
    let missing = || Err(CallError::Protocol("the answer to the batch lacks this call".to_owned()));
    found.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
}

fn outcome_of(outcome: Outcome) -> Result<RawJson, CallError> {
    outcome.map_err(CallError::Rpc)
}
