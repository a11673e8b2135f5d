//! The whole server with a sequence of messages: exactly one response per request, and no panic.
//!
//! An input is a byte of limits, and messages, one per line. They go to a server over an in-memory
//! transport. The clock of the runtime only advances when all tasks wait, so waiting takes no time and a
//! missing response is noticed at once.

mod expected;
mod service;

use std::time::Duration;

use antiphon::transport::memory::{MemoryTransport, pair};
use antiphon::{Client, Dialect, Limits, Responder};
use antiphon_core::Rules;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use expected::{Expected, refusals};
pub(crate) use service::router;

/// Longer than any wait of the service, and shorter than any limit of a connection.
const NOTHING_COMES: Duration = Duration::from_secs(20);
/// A call that no input can contain: it has a newline.
const PROBE: &str =
    "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\n\"params\":[\"probe\"],\"id\":\"probe\\u0000\"}";

/// For every sequence of messages: each Request has one Response with its id; each batch has one Array with
/// a Response for each Request and each invalid entry; Notifications and Responses have none; and a call
/// after all of them is answered.
pub fn check(data: &[u8]) {
    let Some((options, messages)) = data.split_first() else { return };
    let messages: Vec<&[u8]> = messages.split(|byte| *byte == b'\n').collect();
    let setup = Setup::of(*options);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver for sockets");
    runtime.block_on(async {
        setup.converse(&messages).await;
        setup.respond(&messages).await;
        respond_in_dialects(&messages).await;
    });
}

/// In each dialect a response is JSON, and no dialect answers it: two peers could otherwise answer each other
/// forever.
async fn respond_in_dialects(messages: &[&[u8]]) {
    let dialects = [Dialect::plain(), Dialect::v1(), Dialect::bitcoin(), Dialect::ethereum()];
    let responders = dialects.map(|dialect| Responder::new(router()).dialect(dialect));
    for message in messages {
        for responder in &responders {
            let Some(response) = responder.answer(Bytes::copy_from_slice(message)).await else {
                continue;
            };
            serde_json::from_slice::<IgnoredAny>(&response).expect("a response is JSON");
            // The response to an empty batch over HTTP. A connection never sends it.
            if response == "[]" {
                continue;
            }
            for other in &responders {
                assert_eq!(other.answer(response.clone()).await, None, "{response:?} is answered");
            }
        }
    }
}

/// The message with the default limits.
pub fn seed(message: &[u8]) -> Vec<u8> {
    [&[0], message].concat()
}

struct Setup {
    limits: Limits,
    dialect: Dialect,
}

impl Setup {
    fn of(options: u8) -> Self {
        let is_set = |bit: u8| options & bit != 0;
        let mut limits = Limits::default();
        match options & 3 {
            0 => {}
            few => limits.in_flight = usize::from(few),
        }
        if is_set(4) {
            limits.response_bytes = 150;
        }
        if is_set(8) {
            limits.batch_entries = 2;
        }
        if is_set(16) {
            limits.depth = 4;
        }
        if is_set(32) {
            limits.write_queue_bytes = 64;
        }
        let dialect = if is_set(64) { Dialect::lsp() } else { Dialect::plain() };
        Self { limits, dialect }
    }

    /// Sends all messages on one connection, as fast as the server reads them.
    async fn converse(&self, messages: &[&[u8]]) {
        let (ours, theirs) = pair();
        let server = Client::builder()
            .limits(self.limits.clone())
            .dialect(self.dialect.clone())
            .handler(router())
            .over(theirs);
        let mut expected = Expected::new();
        // LSP reads `"params": null` as absent.
        let null_params = self.dialect != Dialect::plain();
        let (rules, busy) = (Rules { null_params, ..self.limits.rules() }, self.refusals());
        for message in messages.iter().copied().chain([PROBE.as_bytes()]) {
            expected.sent(message, &rules, &busy);
        }
        let (mut sink, mut stream) = ours.split();
        let sending = async {
            for message in messages.iter().copied().chain([PROBE.as_bytes()]) {
                sink.send(Bytes::copy_from_slice(message)).await.expect("the server takes it");
            }
            // Dropped at the end with the rest: the server would read an earlier drop as a close.
            sink
        };
        let ((), _sink) = tokio::join!(hear(&mut stream, &mut expected), sending);
        drop(server);
    }

    fn refusals(&self) -> Vec<i64> {
        refusals(&self.limits, self.dialect != Dialect::plain())
    }

    /// Sends each message alone, without a transport.
    async fn respond(&self, messages: &[&[u8]]) {
        let responder = Responder::with_limits(router(), self.limits.clone());
        let (rules, busy) = (self.limits.rules(), self.refusals());
        for message in messages {
            let mut expected = Expected::new();
            let is_owed = expected.sent(message, &rules, &busy);
            let answer = responder.answer(Bytes::copy_from_slice(message)).await;
            assert_eq!(answer.is_some(), is_owed, "an answer where none is due, or none");
            answer.iter().for_each(|answer| expected.came(answer));
        }
    }
}

type Incoming = futures_util::stream::SplitStream<MemoryTransport>;

/// Takes responses until none arrives any more. All due responses must have arrived by then.
async fn hear(stream: &mut Incoming, expected: &mut Expected) {
    while let Ok(answer) = timeout(NOTHING_COMES, stream.next()).await {
        let answer = answer.expect("the server stays").expect("the transport works");
        expected.came(&answer);
    }
    assert!(expected.is_met(), "no answer came for {}", expected.list().join(", "));
}
