//! Several calls in one message.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{Method, Params, ParamsError, RawJson};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::typed::{typed, within};
use super::{BatchEntry, Call, CallError, Caller, Invocation};

/// Several calls and notifications in one message, each call with a result type of its own.
///
/// ```
/// # async fn example(client: antiphon::Client) -> Result<(), antiphon::CallError> {
/// let mut batch = client.batch();
/// let sum = batch.call::<i64>("sum", [1, 2, 4]);
/// let data = batch.call::<(String, i64)>("get_data", ());
/// batch.notify("update", [1, 2, 3]);
/// let mut replies = batch.send().await?;
/// assert_eq!(replies.take(sum)?, 7);
/// assert_eq!(replies.take(data)?.0, "hello");
/// # Ok(()) }
/// ```
#[must_use = "a batch is sent by `send`"]
pub struct Batch {
    caller: Arc<dyn Caller>,
    entries: Vec<BatchEntry>,
    methods: Vec<Method>,
    fault: Option<ParamsError>,
    headers: HeaderMap,
    timeout: Option<Duration>,
}

/// The place of one call in a batch, and the type of its result.
#[derive(Debug)]
pub struct Slot<R>(usize, PhantomData<fn() -> R>);

/// What came back for a batch.
#[derive(Debug)]
pub struct Replies {
    results: Vec<Option<Result<RawJson, CallError>>>,
    methods: Vec<Method>,
}

impl Batch {
    pub(crate) fn new(caller: Arc<dyn Caller>, timeout: Option<Duration>) -> Self {
        let (entries, methods, headers) = (Vec::new(), Vec::new(), HeaderMap::new());
        Self { caller, entries, methods, fault: None, headers, timeout }
    }

    /// Adds a call. The slot finds its result in the [`Replies`].
    pub fn call<R>(&mut self, method: &str, params: impl Serialize) -> Slot<R> {
        let slot = Slot(self.methods.len(), PhantomData);
        self.methods.push(Method::new(method));
        self.add(method, &params, BatchEntry::Call);
        slot
    }

    /// Adds a notification.
    pub fn notify(&mut self, method: &str, params: impl Serialize) {
        self.add(method, &params, BatchEntry::Notification);
    }

    /// Adds a call that is made already, as a typed client makes it. Whom it would have called, its
    /// timeout and its id do not count: it goes where the batch goes.
    pub fn push<R>(&mut self, call: Call<R>) -> Slot<R> {
        let slot = Slot(self.methods.len(), PhantomData);
        match call.invocation {
            Ok(invocation) => {
                self.methods.push(invocation.method.clone());
                self.entries.push(BatchEntry::Call(Invocation { id: None, ..invocation }));
            }
            Err(fault) => self.fault = self.fault.take().or(Some(fault)),
        }
        slot
    }

    /// Sends a header with the batch, in place of one of that name that the client has. Only HTTP has
    /// any: elsewhere the batch fails with [`CallError::NoHeaders`].
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Gives up on the whole after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the batch and waits for all its results. An empty one is not sent.
    pub async fn send(mut self) -> Result<Replies, CallError> {
        if let Some(fault) = self.fault {
            return Err(CallError::Encode(fault));
        }
        if !self.headers.is_empty() {
            // Each carries them, whichever of them a layer lets through.
            for entry in &mut self.entries {
                let (BatchEntry::Call(call) | BatchEntry::Notification(call)) = entry;
                call.headers_mut().extend(self.headers.clone());
            }
        }
        let results = if self.entries.is_empty() {
            Vec::new()
        } else {
            within(self.timeout, self.caller.send_batch(self.entries)).await?
        };
        Ok(Replies { results: results.into_iter().map(Some).collect(), methods: self.methods })
    }

    fn add(&mut self, method: &str, params: &impl Serialize, entry: fn(Invocation) -> BatchEntry) {
        match Params::encode(params) {
            Ok(params) => self.entries.push(entry(Invocation::new(method, params))),
            Err(fault) => self.fault = self.fault.take().or(Some(fault)),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Replies {
    /// Takes the result of one call. A slot of another batch finds nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a slot is spent")]
    pub fn take<R: DeserializeOwned + 'static>(&mut self, slot: Slot<R>) -> Result<R, CallError> {
        let taken = self.results.get_mut(slot.0).and_then(Option::take);
        match (taken, self.methods.get(slot.0)) {
            (Some(result), Some(method)) => typed(method, result?),
            _ => Err(CallError::Protocol("there is no such slot in this batch".to_owned())),
        }
    }
}
