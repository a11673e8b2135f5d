//! Conventions on top of JSON-RPC, such as those of LSP, MCP and Ethereum, as configuration.
//!
//! Plain JSON-RPC can neither cancel a call nor report its progress. A [`Dialect`] names the
//! notifications that do so on a connection. Both peers must use the same dialect.

mod cancel;
mod errors;
mod progress;

use antiphon_core::Limits;
use antiphon_core::framing::Framing;

pub use cancel::Cancellation;
pub(crate) use errors::ErrorStyle;
pub use progress::{ProgressStyle, Token};

/// Conventions on top of JSON-RPC: which notifications cancel a call or report progress, whether requests
/// may overtake a notification, whether `"params": null` is accepted, the codes of errors, and the defaults of
/// limits and framings. The default is plain JSON-RPC.
///
/// ```
/// use antiphon::{Cancellation, Dialect, ProgressStyle};
///
/// // `$/cancelRequest`, `$/progress`
/// let editor = Dialect::lsp();
/// // `notifications/cancelled`, `notifications/progress`
/// let model = Dialect::mcp();
/// // The error codes, limits and IPC framing of an Ethereum node.
/// let node = Dialect::ethereum();
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
    /// The codes and messages of the errors that the library creates.
    pub(crate) errors: ErrorStyle,
    /// The framing of a Unix socket whose endpoint names none.
    pub(crate) unix_framing: Option<Framing>,
    /// Whether a GET without an upgrade gets an empty response with status 200, for health checks.
    pub(crate) answers_get: bool,
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

    /// The conventions of Ethereum nodes.
    ///
    /// - Errors that the library creates have the codes and messages of nodes: `the method x does not exist/is
    ///   not available`, -32002 for a timeout, -32003 for a response over the limit, -32600 for a batch over the
    ///   limit, and -32005 for a rate limit and too many subscriptions.
    /// - A call whose method ends in `_subscribe` gets -32601 `notifications not supported` over HTTP, before
    ///   it reaches a layer or a handler.
    /// - A server has the [limits](Self::limits) of a node, unless it sets its own.
    /// - A `unix:` endpoint without a framing carries JSON values that follow each other, on both sides. This is
    ///   what nodes call IPC.
    /// - `"params": null` counts as absent.
    /// - A GET without an upgrade gets an empty response with status 200, as health checks expect.
    ///
    /// [`Topic::ethereum`](crate::Topic::ethereum) has the names of subscriptions.
    ///
    /// ```
    /// use antiphon::{Client, Context, Dialect, Router, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().method("eth_chainId", |(): (), _cx: Context| async { Ok("0x1") });
    /// # let path = std::env::temp_dir().join(format!("antiphon-doc-{}.ipc", std::process::id()));
    /// # let endpoint = format!("unix:{}", path.display());
    /// let server = Server::bind(&*endpoint).await?.dialect(Dialect::ethereum());
    /// tokio::spawn(server.serve(router));
    /// let client = Client::builder().dialect(Dialect::ethereum()).connect(&*endpoint).await?;
    /// assert_eq!(client.call::<String>("eth_chainId", ()).await?, "0x1");
    /// let error = client.call::<String>("eth_mine", ()).await.unwrap_err();
    /// assert!(error.to_string().contains("the method eth_mine does not exist/is not available"));
    /// # Ok(()) }
    /// ```
    pub fn ethereum() -> Self {
        Self {
            null_params: true,
            errors: ErrorStyle::Ethereum,
            unix_framing: Some(Framing::Values),
            answers_get: true,
            ..Self::plain()
        }
    }

    /// The limits of a server in this dialect that sets none: those of geth in [`ethereum`](Self::ethereum),
    /// which are 5 MiB for a message, 1,000 entries for a batch and 25 MB for a response. The defaults
    /// otherwise.
    ///
    /// ```
    /// use antiphon::{Dialect, Limits};
    ///
    /// let limits = Limits { connections: 100, ..Dialect::ethereum().limits() };
    /// assert_eq!((limits.connections, limits.batch_entries), (100, 1_000));
    /// assert_eq!(Dialect::lsp().limits(), Limits::default());
    /// ```
    pub fn limits(&self) -> Limits {
        match self.errors {
            ErrorStyle::Plain => Limits::default(),
            ErrorStyle::Ethereum => Limits {
                frame_bytes: 5 << 20,
                batch_entries: 1_000,
                response_bytes: 25_000_000,
                ..Limits::default()
            },
        }
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
