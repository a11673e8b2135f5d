//! Conventions on top of JSON-RPC, such as those of LSP, MCP and Ethereum, as configuration.
//!
//! Plain JSON-RPC can neither cancel a call nor report its progress. A [`Dialect`] names the
//! notifications for both, and holds the other conventions of a community. For cancellation and progress, both peers must
//! use the same dialect.

mod call_style;
mod cancel;
mod errors;
mod progress;

use std::time::Duration;

use antiphon_core::framing::Framing;
use antiphon_core::{Limits, Method, Version, Versions};

pub(crate) use call_style::{CallStyle, encode_id};
pub use cancel::Cancellation;
pub(crate) use errors::ErrorStyle;
pub use progress::{ProgressStyle, Token};

/// The stall timeout of a peer that may be suspended for any time: one year.
const SUSPENDED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Conventions on top of JSON-RPC. The default is plain JSON-RPC 2.0.
///
/// A dialect defines which notifications cancel a call or report progress, whether requests may overtake a
/// notification, and whether `"params": null` is accepted. It also defines the versions of JSON-RPC, error codes, HTTP
/// statuses, and default limits and framings.
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
/// // JSON-RPC 1.0 and 2.0, with the HTTP statuses and errors of a Bitcoin node.
/// let bitcoin = Dialect::bitcoin();
/// // A custom dialect. Its progress notifications contain the id of the call, so params need no token.
/// let own = Dialect::plain()
///     .cancellation(Cancellation::new("cancel", "id"))
///     .progress(ProgressStyle::by_id("progress"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) cancellation: Option<Cancellation>,
    pub(crate) progress: Option<ProgressStyle>,
    pub(crate) is_strict: bool,
    /// The notification that does not wait for the messages before it. It ends the work of the connection, so only the
    /// first one overtakes.
    overtaking: Option<Method>,
    /// Whether `"params": null` counts as absent. The setting of a server or client takes precedence.
    pub(crate) null_params: bool,
    /// The codes and messages of the errors that the library creates.
    pub(crate) errors: ErrorStyle,
    /// The default limits of a server. Boxed, because each client moves its dialect.
    limits: Option<Box<Limits>>,
    /// The framing of a Unix socket whose endpoint names none.
    pub(crate) unix_framing: Option<Framing>,
    /// The framing of a client whose endpoint has none. A server detects the framing.
    pub(crate) client_framing: Option<Framing>,
    /// Whether a GET without an upgrade gets an empty response with status 200, for health checks.
    pub(crate) answers_get: bool,
    /// The versions of incoming messages.
    pub(crate) versions: Versions,
    /// The encoding of outgoing calls.
    pub(crate) calls: CallStyle,
    /// Whether the end of stdin means that the peer is gone. Running calls then have the shutdown timeout to finish.
    pub(crate) ends_with_stdin: bool,
    /// Whether HTTP responses have the statuses and bodies of Bitcoin nodes if the server sets no policy.
    pub(crate) bitcoin_http: bool,
}

impl Dialect {
    /// JSON-RPC as specified, without cancellation and progress.
    pub fn plain() -> Self {
        Self::default()
    }

    /// The Language Server Protocol. A call cancelled with `$/cancelRequest` gets the error -32800;
    /// `$/progress` refers to the `workDoneToken` of the params. The order is
    /// [strict](Self::strict_order), so that a request sees every document change before it. Only `exit`
    /// overtakes other messages. `"params": null`
    /// counts as absent because common editors and servers send it; see
    /// [`Server::null_params`](crate::Server::null_params) and
    /// [`ClientBuilder::null_params`](crate::ClientBuilder::null_params).
    /// A client of an endpoint without a framing, such as `exec:clangd`, uses `Content-Length` headers.
    /// After the end of stdin, running calls have [`Limits::shutdown_timeout`] to finish, because an editor closes stdin
    /// only when it no longer needs the server.
    ///
    /// A server has the [limits](Self::limits) of a language server unless it sets its own. They assume a trusted
    /// editor. On a public network, set lower limits.
    pub fn lsp() -> Self {
        let progress = ProgressStyle::by_param("$/progress", "token", &["workDoneToken"]);
        let lsp = Self::plain()
            .cancellation(Cancellation::new("$/cancelRequest", "id"))
            .progress(progress.under("value"))
            .strict_order(true);
        Self {
            null_params: true,
            limits: Some(Box::new(Limits {
                frame_bytes: 256 << 20,
                response_bytes: 256 << 20,
                // An editor that is suspended or stopped in a debugger reads nothing.
                stall_timeout: SUSPENDED,
                shutdown_timeout: Duration::from_secs(1),
                ..Limits::default()
            })),
            client_framing: Some(Framing::Header),
            overtaking: Some(Method::new("exit")),
            ends_with_stdin: true,
            ..lsp
        }
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
    /// - Library errors have the codes and messages of nodes: `the method x does not exist/is not available`, -32002
    ///   for a timeout, -32003 for a response over the limit, -32600 for a batch over the limit, and -32005 for a
    ///   rate limit or too many subscriptions.
    /// - A call whose method ends in `_subscribe` gets -32601 `notifications not supported` over HTTP, before
    ///   it reaches a layer or a handler.
    /// - A server has the [limits](Self::limits) of a node unless it sets its own.
    /// - A `unix:` endpoint without a framing carries a stream of JSON values, on servers and clients. Nodes call
    ///   this IPC.
    /// - `"params": null` counts as absent.
    /// - A GET without an upgrade gets an empty response with status 200, as health checks expect.
    ///
    /// [`Topic::ethereum`](crate::Topic::ethereum) sets the method names of a subscription.
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
            limits: Some(Box::new(Limits {
                frame_bytes: 5 << 20,
                batch_entries: 1_000,
                response_bytes: 25_000_000,
                ..Limits::default()
            })),
            unix_framing: Some(Framing::Values),
            answers_get: true,
            ..Self::plain()
        }
    }

    /// JSON-RPC 1.0 and 2.0 on one connection. Each message and each batch entry has its own version.
    ///
    /// - A message is a 1.0 message if `jsonrpc` is absent, null or "1.0". Its id is any JSON value; a null or absent
    ///   id makes it a notification. Its response has `result`, `error` and `id`, and no `jsonrpc`. Responses to
    ///   unreadable messages also have this form.
    /// - Outgoing calls are 1.0 calls; see [`version`](Self::version). Responses of both versions are accepted, and
    ///   an error may be any JSON value.
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

    /// The conventions of Bitcoin Core 28 and later, which mixes JSON-RPC 1.0, 1.1 and 2.0.
    ///
    /// - Each message and each batch entry has its own version, as in [`v1`](Self::v1). Every 1.0 call gets a
    ///   response, even without an id. In both versions, an id is any JSON value. Over HTTP, the response to an empty
    ///   batch is `[]`.
    /// - Errors of invalid messages have the codes and messages of Bitcoin Core, without `data`.
    /// - HTTP responses follow [`BitcoinPolicy`](crate::transport::http::BitcoinPolicy) unless the server sets its own
    ///   policy: a failed 1.0 call gets status 400, 404 or 500.
    /// - Outgoing calls are 1.0 calls, which every node understands; see [`version`](Self::version). Responses of both
    ///   versions are accepted.
    ///
    /// Amounts stay exact: [`RawJson`](crate::RawJson) keeps the text of a number.
    ///
    /// ```
    /// use antiphon::{Client, Context, Dialect, ErrorObject, RawJson, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), antiphon::CallError> {
    /// let node = Router::new().method("getbalance", |(): (), _cx: Context| async {
    ///     RawJson::parse("20999999.97690000").map_err(ErrorObject::internal)
    /// });
    /// let client = Client::builder().dialect(Dialect::bitcoin()).in_process(node);
    /// let balance = client.call::<RawJson>("getbalance", ()).await?;
    /// assert_eq!(balance.as_str(), "20999999.97690000");
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

    /// Returns the default limits of a server in this dialect.
    ///
    /// - In [`ethereum`](Self::ethereum), these are geth's: 5 MiB per message, 1,000 entries per batch and 25 MB per
    ///   response.
    /// - In [`lsp`](Self::lsp), they are 256 MiB per message and per response, no stall timeout (one year), and a
    ///   shutdown timeout of one second.
    /// - In other dialects, they are [`Limits::default`].
    ///
    /// ```
    /// use antiphon::{Dialect, Limits};
    ///
    /// let limits = Limits { connections: 100, ..Dialect::ethereum().limits() };
    /// assert_eq!((limits.connections, limits.batch_entries), (100, 1_000));
    /// assert_eq!(Dialect::lsp().limits().frame_bytes, 256 << 20);
    /// assert_eq!(Dialect::plain().limits(), Limits::default());
    /// ```
    pub fn limits(&self) -> Limits {
        self.limits.as_deref().cloned().unwrap_or_default()
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
    /// Normally, a request starts after the notifications before it have finished. The setting matters in one case:
    /// a notification handler awaits a response of the peer, and the peer may first need the response to a
    /// later request.
    /// - If the order is not strict, later requests overtake that notification, so no deadlock can arise.
    ///   The first such request of a connection is logged as a warning.
    /// - If the order is strict, later requests wait. Responses and cancellations still pass. The peer must
    ///   respond without waiting for a request that it sent later, or both sides wait forever. A
    ///   [`timeout`](crate::Call::timeout) on the call ends such a wait.
    ///
    /// With [`Context::spawn`](crate::Context::spawn), the setting does not matter: a call in a spawned task delays no
    /// other message.
    ///
    /// Messages that wait are limited by `queued_messages` and `frame_bytes` of
    /// [`Limits`](crate::Limits). Beyond a limit, a request gets -32009, and a notification closes
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

    /// Whether a message may exist that does not wait for the messages before it.
    pub(crate) fn has_urgent_messages(&self) -> bool {
        self.cancellation.is_some() || self.overtaking.is_some()
    }

    /// Whether a notification does not wait for the messages before it.
    pub(crate) fn overtakes(&self, method: &Method) -> bool {
        self.overtaking
            .as_ref()
            .is_some_and(|overtaking| overtaking.as_bytes() == method.as_bytes())
    }

    /// Sets the version of outgoing calls. A dialect that sends 1.0 calls also accepts 1.0 responses.
    ///
    /// ```
    /// use antiphon::{Dialect, Version};
    ///
    /// // Sends 2.0 calls. The node may respond in either version.
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
