//! A language server as the handler of one connection.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon::layer::{CallService, HandlerService, IncomingCall};
use antiphon::{BoxFuture, Context, Handler, Invocation, Outcome, Peer, Router};
use tower_layer::Layer;

use crate::editor_process;
use crate::faults::{Faults, excerpt};
use crate::generated::language_server;
use crate::lifecycle::Lifecycle;
use crate::methods::Methods;
use crate::progress::Reporters;
use crate::{Editor, LanguageServer};

/// A [`Handler`] that serves a [`LanguageServer`] on one connection, with the lifecycle of the protocol:
///
/// - Before `initialize` has succeeded, a request gets the error -32002, and a notification is dropped.
/// - A second `initialize` gets -32600. If `initialize` fails, the editor may repeat it.
/// - After `shutdown`, every request gets -32600, and a notification is dropped.
/// - `exit` does not wait for the messages before it, and closes the connection. Running methods then have
///   [`Limits::shutdown_timeout`](antiphon::Limits::shutdown_timeout) to finish (one second in `Dialect::lsp`). The
///   method [`exit`](LanguageServer::exit) itself always has at most one second.
///
/// Unknown requests get -32601, and unknown notifications are ignored, including those whose names begin with `$/`. The
/// same applies to messages of the wrong kind: `exit` as a request gets -32601, and `initialize` as a notification is
/// ignored.
///
/// If the params of `textDocument/didOpen` or `textDocument/didChange` cannot be decoded, but name the document, the
/// server handles `textDocument/didClose` for it instead, so it never works with an outdated text. A notebook is not
/// closed. An error in the log names the method and the reason, as for every notification of the protocol that cannot
/// be decoded.
///
/// Serve it with [`Dialect::lsp`](antiphon::Dialect::lsp). Otherwise the connection knows no cancellation, and requests
/// can overtake document changes.
///
/// [`serve_stdio`](crate::serve_stdio) and [`Channel`](crate::Channel) serve one editor and return the exit
/// status. To serve many editors, use a [`Server`](antiphon::Server):
///
/// ```no_run
/// use antiphon::Server;
/// use antiphon_lsp::types::{InitializeParams, InitializeResult};
/// use antiphon_lsp::{Editor, LanguageServer, LanguageService};
/// # use antiphon::{Context, Dialect, ErrorObject};
/// # struct Backend;
/// # impl LanguageServer for Backend {
/// #     async fn initialize(&self, _: InitializeParams, _: Context) -> Result<InitializeResult, ErrorObject> {
/// #         Ok(InitializeResult::default())
/// #     }
/// # }
/// # impl Backend { fn new(_: Editor) -> Self { Self } }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::bind("tcp+header://127.0.0.1:9257").await?;
/// server
///     .dialect(Dialect::lsp())
///     .serve_with(|_connection, peer| LanguageService::for_peer(peer, Backend::new))
///     .await?;
/// # Ok(()) }
/// ```
///
/// To add your own methods, merge a router. An `Arc` of the server can be the state of that router:
///
/// ```
/// use std::sync::Arc;
///
/// use antiphon::{Context, ErrorObject, Router};
/// use antiphon_lsp::LanguageService;
/// # use antiphon_lsp::LanguageServer;
/// # use antiphon_lsp::types::{InitializeParams, InitializeResult};
/// # struct Backend;
/// # impl LanguageServer for Backend {
/// #     async fn initialize(&self, _: InitializeParams, _: Context) -> Result<InitializeResult, ErrorObject> {
/// #         Ok(InitializeResult::default())
/// #     }
/// # }
///
/// async fn status(_: (), backend: Arc<Backend>, _: Context) -> Result<&'static str, ErrorObject> {
///     drop(backend);
///     Ok("idle")
/// }
///
/// let backend = Arc::new(Backend);
/// let own = Router::with_state(backend.clone()).method("myserver/status", status).into_router();
/// let service = LanguageService::from(backend).merge(own);
/// # drop(service);
/// ```
pub struct LanguageService {
    methods: Methods,
    layers: Vec<HandlerLayer>,
    /// The methods inside of the layers.
    handler: Arc<dyn Handler>,
    lifecycle: Arc<Lifecycle>,
    /// The running progress of this connection, if the service has an [`Editor`].
    reporters: Option<Arc<Reporters>>,
    /// Whether the server ends with the process that `initialize` names.
    ends_with_editor: bool,
    /// Whether a cancellation has arrived that the connection does not know.
    is_dialect_reported: AtomicBool,
}

type HandlerLayer = Arc<dyn Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync>;

/// The time in which the method `exit` must finish.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

impl LanguageService {
    /// Creates the handler of a connection. The closure receives the handle of the editor, and returns a
    /// [`LanguageServer`], or a `LanguageService` with your own methods or layers.
    pub fn for_peer<S: Into<Self>>(peer: Peer, make: impl FnOnce(Editor) -> S) -> Self {
        let reporters: Arc<Reporters> = Arc::default();
        let service = make(Editor::new(peer, reporters.clone())).into();
        Self { reporters: Some(reporters), ..service }
    }

    /// Creates the handler of a connection for a server that never calls the editor.
    pub fn new<S: LanguageServer>(server: S) -> Self {
        Self::from(Arc::new(server))
    }

    /// Adds the methods of a router.
    ///
    /// # Panics
    /// Panics if the router defines a method of the protocol.
    #[must_use]
    pub fn merge(mut self, router: Router) -> Self {
        self.methods.router = Arc::new(Arc::unwrap_or_clone(self.methods.router).merge(router));
        self.wrapped()
    }

    /// Adds a `tower` layer around each method. The layer that is added last is the outermost. A message that the
    /// lifecycle refuses reaches no layer.
    ///
    /// Unlike [`Handler::layer`], the result is still a `LanguageService`, so
    /// [`serve_stdio`](crate::serve_stdio) and [`Channel`](crate::Channel) serve it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use antiphon::layer::Timeout;
    /// use antiphon_lsp::{Editor, LanguageServer, LanguageService};
    ///
    /// fn service(server: impl LanguageServer) -> LanguageService {
    ///     LanguageService::new(server).layer(Timeout::new(Duration::from_secs(30)))
    /// }
    /// ```
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService> + Send + Sync + 'static,
        L::Service: CallService<IncomingCall, Future: Send> + Send + Sync + 'static,
    {
        self.layers.push(Arc::new(move |handler| Arc::new(handler.layer(&layer))));
        self.wrapped()
    }

    /// Puts the layers around the methods.
    fn wrapped(mut self) -> Self {
        let methods: Arc<dyn Handler> = Arc::new(self.methods.clone());
        self.handler = self.layers.iter().fold(methods, |inner, layer| layer(inner));
        self
    }

    /// Makes this the only service of the process: it shares this lifecycle, ends when the editor's process
    /// (`processId` of `initialize`) has ended, and writes faults of the editor to stderr.
    pub(crate) fn for_process(mut self, lifecycle: Arc<Lifecycle>, faults: Faults) -> Self {
        self.methods.faults = faults;
        Self { lifecycle, ends_with_editor: true, ..self }.wrapped()
    }

    fn initialize(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        if let Some(reporters) = &self.reporters {
            reporters.negotiate(call.params.as_ref());
        }
        let editor = editor_process::id(call.params.as_ref()).filter(|_| self.ends_with_editor);
        let faults = self.methods.faults.clone();
        let answer = self.handler.call(call, cx);
        let mut initializing = Initializing { lifecycle: self.lifecycle.clone(), is_ok: false };
        Box::pin(async move {
            let outcome = answer.await;
            initializing.is_ok = outcome.is_ok();
            if let (true, Some(editor)) = (initializing.is_ok, editor) {
                end_with(editor, initializing.lifecycle.clone(), &faults);
            }
            outcome
        })
    }

    fn exit(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let (lifecycle, handler) = (self.lifecycle.clone(), self.handler.clone());
        Box::pin(async move {
            // First, so that the method has the same second as the handlers that run, and even if it panics.
            lifecycle.end();
            if let Some(peer) = cx.peer().ok().cloned() {
                // In a task, because the connection closes only after this notification is handled.
                tokio::spawn(async move { peer.close().await });
            }
            let handled = handler.notify(notification, cx);
            if tokio::time::timeout(EXIT_TIMEOUT, handled).await.is_err() {
                tracing::warn!("the handler of `exit` has not finished within {EXIT_TIMEOUT:?}");
            }
        })
    }

    /// Logs once that the connection does not know the protocol.
    fn report_dialect(&self) {
        if !self.is_dialect_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "cancellations are ignored, and requests can overtake document changes: set \
                 `Dialect::lsp()` on the server"
            );
        }
    }
}

/// Ends the server when the process of the editor ends, if the process is visible.
fn end_with(editor: i32, lifecycle: Arc<Lifecycle>, faults: &Faults) {
    if !editor_process::is_alive(editor) {
        let effect = "so the server ends only with its connection";
        tracing::warn!(editor, "the process of the editor (`processId`) is not visible, {effect}");
        faults.report_once(&format!(
            "the process {editor} of the editor (`processId`) is not visible here, {effect}"
        ));
        return;
    }
    tokio::spawn(async move {
        tokio::select! {
            () = editor_process::ended(editor) => lifecycle.end(),
            () = lifecycle.ended() => {}
        }
    });
}

/// A guard that leaves the phase `Initializing` even if the future of `initialize` is dropped, for example by a
/// cancellation or a panic.
struct Initializing {
    lifecycle: Arc<Lifecycle>,
    is_ok: bool,
}

impl Drop for Initializing {
    fn drop(&mut self) {
        self.lifecycle.initialized(self.is_ok);
    }
}

impl<S: LanguageServer> From<S> for LanguageService {
    fn from(server: S) -> Self {
        Self::new(server)
    }
}

impl<S: LanguageServer> From<Arc<S>> for LanguageService {
    fn from(server: Arc<S>) -> Self {
        let router = Arc::new(language_server::router(&server));
        let methods = Methods { router, faults: Faults::Log };
        Self {
            handler: Arc::new(methods.clone()),
            methods,
            layers: Vec::new(),
            lifecycle: Arc::new(Lifecycle::new()),
            reporters: None,
            ends_with_editor: false,
            is_dialect_reported: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for LanguageService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LanguageService")
            .field("methods", &self.methods)
            .field("layers", &self.layers.len())
            .field("lifecycle", &self.lifecycle)
            .finish_non_exhaustive()
    }
}

impl Handler for LanguageService {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        if let Err(error) = self.lifecycle.admit_request(call.method.as_str()) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let reporters = self.reporters.as_ref();
        let request = reporters.and_then(|reporters| reporters.request(call.params.as_ref()));
        let answer = match call.method.as_str() {
            "initialize" => self.initialize(call, cx),
            _ => self.handler.call(call, cx),
        };
        let Some(request) = request else { return answer };
        Box::pin(async move {
            // Dropped after the answer's future, and before the response is queued.
            let _request = request;
            answer.await
        })
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let method = notification.method.as_str();
        if method == "exit" {
            self.exit(notification, cx)
        } else if method == "$/cancelRequest" {
            self.report_dialect();
            Box::pin(std::future::ready(()))
        } else if self.lifecycle.admits_notification(method) {
            if let (Some(reporters), "window/workDoneProgress/cancel") = (&self.reporters, method) {
                reporters.cancel(notification.params.as_ref());
            }
            self.handler.notify(notification, cx)
        } else {
            tracing::debug!(
                method = excerpt(method),
                "notification dropped: the server is not initialized, or shut down"
            );
            Box::pin(std::future::ready(()))
        }
    }
}
