//! Conventions on top of JSON-RPC, such as those of LSP, MCP and Ethereum, as configuration.
//!
//! Plain JSON-RPC can neither cancel a call nor report its progress. A [`Dialect`] names the
//! notifications that do so on a connection. Both peers must use the same dialect.

mod call_style;
mod cancel;
mod errors;
mod progress;

use antiphon_core::framing::Framing;
use antiphon_core::{Limits, Version, Versions};

pub(crate) use call_style::{CallStyle, encode_id};
pub use cancel::Cancellation;
pub(crate) use errors::ErrorStyle;
pub use progress::{ProgressStyle, Token};

/// Conventions on top of JSON-RPC: which notifications cancel a call or report progress, whether requests
/// may overtake a notification, whether `"params": null` is accepted, the versions of JSON-RPC, the codes of errors,
/// the HTTP statuses, and the defaults of limits and framings. The default is plain JSON-RPC 2.0.
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
/// // JSON-RPC 1.0 beside 2.0, with the statuses and errors of a Bitcoin node.
/// let bitcoin = Dialect::bitcoin();
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
    /// The versions that are read.
    pub(crate) versions: Versions,
    /// The version of the calls of this side.
    pub(crate) calls: CallStyle,
    /// Whether HTTP responses have the statuses and bodies of Bitcoin nodes, unless a policy is set.
    pub(crate) bitcoin_http: bool,
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

    /// JSON-RPC 1.0 beside 2.0, decided by each message and each entry of a batch.
    ///
    /// - A message without `jsonrpc`, or with null or "1.0" in it, is one of 1.0. Its id is any JSON value. A
    ///   null or absent id makes it a notification. Its response has `result`, `error` and `id`, and no
    ///   `jsonrpc`. So do the responses to messages that cannot be read.
    /// - This side calls in 1.0; see [`version`](Self::version). It reads responses of both versions, and
    ///   errors of any JSON value.
    /// - `"params": null` counts as absent.
    ///
    /// ```
    /// use antiphon::{Client, Context, Dialect, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), antiphon::CallError> {
    /// let router = Router::new().method("add", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) });
    /// let client = Client::builder().dialect(Dialect::v1()).in_process(router);
    /// assert_eq!(client.call::<i64>("add", (2, 3)).await?, 5);
    /// # Ok(()) }
    /// ```
    pub fn v1() -> Self {
        Self {
            null_params: true,
            versions: Versions::V1AndV2,
            calls: CallStyle::V1,
            ..Self::plain()
        }
    }

    /// The conventions of Bitcoin nodes: those of Bitcoin Core 28 and later, which mixes JSON-RPC 1.0, 1.1 and
    /// 2.0.
    ///
    /// - The version is decided by each message and each entry of a batch, as in [`v1`](Self::v1). Every call of
    ///   1.0 gets a response, also without an id. Ids are any JSON value in both versions. The empty batch has
    ///   the reply `[]` over HTTP.
    /// - Invalid messages get the codes and words of Bitcoin Core, without `data`.
    /// - The HTTP responses are those of [`BitcoinPolicy`](crate::transport::http::BitcoinPolicy), unless the
    ///   server has its own policy: a failed call of 1.0 has the status 400, 404 or 500.
    /// - This side calls in 1.0, which every node understands; see [`version`](Self::version). It reads
    ///   responses of both versions.
    ///
    /// Amounts stay exact: [`RawJson`](crate::RawJson) keeps the text of a number.
    ///
    /// ```
    /// use antiphon::{Client, Context, Dialect, ErrorObject, RawJson, Router, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Router::new().method("getbalance", |(): (), cx: Context| async move {
    ///     match cx.connection().path() {
    ///         Some("/wallet/savings") => Ok(21_000_000),
    ///         _ => Err(ErrorObject::new(-18, "Requested wallet does not exist or is not loaded")),
    ///     }
    /// });
    /// let server = Server::bind("http://127.0.0.1:0").await?.dialect(Dialect::bitcoin());
    /// let wallet = server.endpoint().with_path("/wallet/savings")?;
    /// tokio::spawn(server.serve(node));
    /// let client = Client::builder().dialect(Dialect::bitcoin()).connect(&wallet).await?;
    /// assert_eq!(client.call::<RawJson>("getbalance", ()).await?.as_str(), "21000000");
    /// # Ok(()) }
    /// ```
    pub fn bitcoin() -> Self {
        Self {
            null_params: true,
            errors: ErrorStyle::Bitcoin,
            versions: Versions::Bitcoin,
            calls: CallStyle::StatedV1,
            bitcoin_http: true,
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
            ErrorStyle::Plain | ErrorStyle::Bitcoin => Limits::default(),
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

    /// Sets the version of the calls of this side. A dialect that calls in 1.0 also reads responses of 1.0.
    ///
    /// ```
    /// use antiphon::{Dialect, Version};
    ///
    /// // Calls in 2.0; the node may answer in either version.
    /// let node = Dialect::bitcoin().version(Version::V2);
    /// # drop(node);
    /// ```
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.calls = match (version, self.versions) {
            (Version::V1, Versions::Bitcoin) => CallStyle::StatedV1,
            (Version::V1, _) => CallStyle::V1,
            _ => CallStyle::V2,
        };
        if version == Version::V1 && self.versions == Versions::V2 {
            self.versions = Versions::V1AndV2;
        }
        self
    }

    /// `None` for plain JSON-RPC, so that the hot path skips the check.
    pub(crate) fn unless_plain(self) -> Option<Self> {
        (self != Self::plain()).then_some(self)
    }
}
