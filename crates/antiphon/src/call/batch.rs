//! A batch of calls and notifications.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use antiphon_core::{Method, Params, ParamsError, RawJson};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::deadline::within;
use super::exchange::missing_reply;
use super::name_prefix::NamePrefix;
use super::typed::typed;
use super::{BatchEntry, Call, CallError, Caller, Invocation};

/// Several calls and notifications in one message. Each call has its own result type.
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
    number: BatchNumber,
    caller: Arc<dyn Caller>,
    entries: Vec<BatchEntry>,
    methods: Vec<Method>,
    params_error: Option<ParamsError>,
    headers: HeaderMap,
    timeout: Option<Duration>,
    prefix: NamePrefix,
}

/// The position of one call in a batch, and the type of its result.
///
/// Created by [`Batch::call`], and used by [`Replies::take`].
#[derive(Debug)]
pub struct Slot<R> {
    batch: BatchNumber,
    index: usize,
    result: PhantomData<fn() -> R>,
}

/// Distinguishes the batches of this process, so that no slot takes a result of another batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BatchNumber(u64);

impl BatchNumber {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The results of a batch.
///
/// Created by [`Batch::send`]; see [`Batch`] for an example.
///
/// ```
/// use antiphon::{CallError, Client};
///
/// # async fn example(client: Client) -> Result<(), CallError> {
/// let mut batch = client.batch();
/// let sum = batch.call::<i64>("add", (1, 2));
/// let name = batch.call::<String>("name", ());
/// let mut replies = batch.send().await?;
/// println!("{} {}", replies.take(sum)?, replies.take(name)?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Replies {
    number: BatchNumber,
    results: Vec<Option<Result<RawJson, CallError>>>,
    methods: Vec<Method>,
}

impl Batch {
    pub(crate) fn new(
        caller: Arc<dyn Caller>,
        timeout: Option<Duration>,
        prefix: NamePrefix,
    ) -> Self {
        let (entries, methods, headers) = (Vec::new(), Vec::new(), HeaderMap::new());
        let number = BatchNumber::next();
        Self { number, caller, entries, methods, params_error: None, headers, timeout, prefix }
    }

    /// Adds a call. The slot identifies its result in the [`Replies`]. Params that cannot be encoded are the
    /// error of [`send`](Self::send).
    pub fn call<R>(&mut self, method: &str, params: impl Serialize) -> Slot<R> {
        let slot = self.slot();
        let method = self.prefix.name(method);
        self.methods.push(Method::new(&method));
        self.add(&method, &params, BatchEntry::Call);
        slot
    }

    /// Adds a notification.
    pub fn notify(&mut self, method: &str, params: impl Serialize) {
        let method = self.prefix.name(method);
        self.add(&method, &params, BatchEntry::Notification);
    }

    /// Adds an existing call, for example of a typed client. Its own caller, timeout and id are ignored:
    /// it is sent with the batch.
    pub fn push<R>(&mut self, call: Call<R>) -> Slot<R> {
        let slot = self.slot();
        match call.invocation {
            Ok(invocation) => {
                self.methods.push(invocation.method.clone());
                self.entries.push(BatchEntry::Call(Invocation { id: None, ..invocation }));
            }
            Err(error) => self.params_error = self.params_error.take().or(Some(error)),
        }
        slot
    }

    /// Sends a header with the batch. It replaces a header of the client with the same name. On a
    /// transport that cannot send headers the batch fails with [`CallError::CannotSendHeaders`]. HTTP can,
    /// and so can a [`RequestReply`](crate::transport::RequestReply) that declares it.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets the timeout of the whole batch.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the batch and waits for all its results. An empty batch is not sent.
    ///
    /// # Errors
    /// Fails if no call of the batch can have a result of its own: the params of an entry cannot be encoded,
    /// the batch was not sent, the timeout has passed, or the reply as a whole cannot be read. Everything
    /// else is the error of one call, which [`Replies::take`] returns: an error response, a missing response,
    /// or a result of another type. An error with which the server rejects the whole batch is the error of
    /// every call. The end of the connection while the batch waits is the error of every call without a
    /// response; over HTTP, it fails the batch.
    ///
    /// # Cancel safety
    /// Dropping the future abandons every call of the batch that has no response yet. The peer may have
    /// executed any of them. The results that have arrived are lost.
    pub async fn send(mut self) -> Result<Replies, CallError> {
        if let Some(error) = self.params_error {
            return Err(CallError::Encode(error));
        }
        if !self.headers.is_empty() {
            // Each entry carries them, because a layer may reject any of the entries.
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
        let results = results.into_iter().map(Some).collect();
        Ok(Replies { number: self.number, results, methods: self.methods })
    }

    /// The slot of the next call.
    fn slot<R>(&self) -> Slot<R> {
        Slot { batch: self.number, index: self.methods.len(), result: PhantomData }
    }

    fn add(&mut self, method: &str, params: &impl Serialize, entry: fn(Invocation) -> BatchEntry) {
        match Params::encode(params) {
            Ok(params) => self.entries.push(entry(Invocation::new(method, params))),
            Err(error) => self.params_error = self.params_error.take().or(Some(error)),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Replies {
    /// Takes the result of one call.
    ///
    /// # Errors
    /// Fails with the error of the call. Also fails for a slot of another batch.
    #[expect(clippy::needless_pass_by_value, reason = "a slot is used once")]
    pub fn take<R: DeserializeOwned + 'static>(&mut self, slot: Slot<R>) -> Result<R, CallError> {
        if slot.batch != self.number {
            return Err(CallError::protocol(
                "the slot is of another batch; take it from the replies of its own batch",
            ));
        }
        let taken = self.results.get_mut(slot.index).and_then(Option::take);
        match (taken, self.methods.get(slot.index)) {
            (Some(result), Some(method)) => typed(method, result?),
            _ => Err(missing_reply()),
        }
    }
}
