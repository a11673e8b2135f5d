//! Conventions on top of JSON-RPC, such as those of LSP and MCP, as configuration.
//!
//! Plain JSON-RPC can neither cancel a call nor report its progress. A [`Dialect`] names the
//! notifications that do so on a connection. Both peers must use the same dialect.

mod cancel;
mod progress;

pub use cancel::Cancellation;
pub use progress::{ProgressStyle, Token};

/// Conventions on top of JSON-RPC: which notifications cancel a call or report progress, whether requests
/// may overtake a notification, and whether `"params": null` is accepted. The default is plain JSON-RPC.
///
/// ```
/// use antiphon::{Cancellation, Dialect, ProgressStyle};
///
/// // `$/cancelRequest`, `$/progress`
/// let editor = Dialect::lsp();
/// // `notifications/cancelled`, `notifications/progress`
/// let model = Dialect::mcp();
/// // A custom dialect: progress refers to the id of the call, and params may have any shape.
/// let own = Dialect::plain()
///     .cancellation(Cancellation::new("cancel", "id"))
///     .progress(ProgressStyle::by_id("progress"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) cancellation: Option<Cancellation>,
    pub(crate) progress: Option<ProgressStyle>,
    pub(crate) is_strict: bool,
    /// Whether `"params": null` counts as absent, unless the server or client sets it.
    pub(crate) null_params: bool,
}

impl Dialect {
    /// JSON-RPC as specified, without cancellation and progress.
    pub fn plain() -> Self {
        Self::default()
    }

    /// The Language Server Protocol. A call cancelled with `$/cancelRequest` gets the error -32800;
    /// `$/progress` refers to the `workDoneToken` of the params. The order is
    /// [strict](Self::strict_order), so that a request sees every document change before it. `"params": null`
    /// counts as absent, because common editors and servers send it; see
    /// [`Server::null_params`](crate::Server::null_params) and
    /// [`ClientBuilder::null_params`](crate::ClientBuilder::null_params).
    pub fn lsp() -> Self {
        let progress = ProgressStyle::by_param("$/progress", "token", &["workDoneToken"]);
        let lsp = Self::plain()
            .cancellation(Cancellation::new("$/cancelRequest", "id"))
            .progress(progress.under("value"))
            .strict_order(true);
        Self { null_params: true, ..lsp }
    }

    /// The Model Context Protocol. A call cancelled with `notifications/cancelled` gets no response;
    /// `notifications/progress` refers to the `progressToken` in the `_meta` of the params.
    pub fn mcp() -> Self {
        let token = ["_meta", "progressToken"];
        Self::plain()
            .cancellation(Cancellation::new("notifications/cancelled", "requestId").silent())
            .progress(ProgressStyle::by_param("notifications/progress", "progressToken", &token))
    }

    /// Sets the notification that cancels a call.
    #[must_use]
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets the notification that reports progress.
    #[must_use]
    pub fn progress(mut self, progress: ProgressStyle) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets whether a request waits for an earlier notification while the handler of that notification awaits
    /// a call to the peer. True in [`lsp`](Self::lsp), false in the other dialects.
    ///
    /// A request starts only after the notifications before it have finished. The order matters in one case:
    /// a notification handler awaits a response of the peer, and the peer may first need the response to a
    /// later request.
    /// - If the order is not strict, later requests overtake that notification, so no deadlock can arise.
    ///   The first such request of a connection is logged as a warning.
    /// - If the order is strict, later requests wait. Responses and cancellations still pass. The peer must
    ///   respond without waiting for a request that it sent later, or both sides wait forever. A
    ///   [`timeout`](crate::Call::timeout) on the call ends such a wait.
    ///
    /// [`Context::spawn`](crate::Context::spawn) avoids the choice: a handler that makes its call in a
    /// spawned task delays nothing.
    ///
    /// Messages that wait are limited by `queued_messages` and `frame_bytes` of
    /// [`Limits`](crate::Limits). Beyond a limit requests are refused with -32009, and a notification ends
    /// the connection.
    ///
    /// ```
    /// use antiphon::Dialect;
    ///
    /// let documents = Dialect::plain().strict_order(true);
    /// # drop(documents);
    /// ```
    #[must_use]
    pub fn strict_order(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// `None` for plain JSON-RPC, so that the hot path skips the check.
    pub(crate) fn unless_plain(self) -> Option<Self> {
        (self != Self::plain()).then_some(self)
    }
}
