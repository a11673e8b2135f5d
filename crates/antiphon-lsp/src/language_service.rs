//! A language server as the handler of one connection.

use std::sync::Arc;

use antiphon::{BoxFuture, Context, Handler, Invocation, Outcome, Peer, Router};

use crate::editor_process;
use crate::generated::language_server;
use crate::lifecycle::Lifecycle;
use crate::progress::Reporters;
use crate::{Editor, LanguageServer};

/// A [`Handler`] that serves a [`LanguageServer`] on one connection, with the lifecycle of the protocol:
///
/// - Before the response to `initialize`, a request gets the error -32002, and a notification is dropped.
/// - A second `initialize` gets -32600. If `initialize` fails, the editor may repeat it.
/// - After `shutdown`, every request gets -32600, and a notification is dropped.
/// - `exit` closes the connection.
///
/// Unknown requests get -32601, and unknown notifications are ignored, including those whose names begin with `$/`.
///
/// [`serve_stdio`](crate::serve_stdio) and [`Channel`](crate::Channel) serve one editor and return the exit
/// status. To serve many editors, use a [`Server`](antiphon::Server):
///
/// ```no_run
/// use antiphon::Server;
/// use antiphon_lsp::types::{InitializeParams, InitializeResult};
/// use antiphon_lsp::{Editor, LanguageServer, LanguageService, limits};
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
///     .limits(limits())
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
#[derive(Debug)]
pub struct LanguageService {
    router: Router,
    lifecycle: Arc<Lifecycle>,
    /// The running progress of this connection, if the service has an [`Editor`].
    reporters: Option<Arc<Reporters>>,
    /// Whether the server ends with the process that `initialize` names.
    ends_with_editor: bool,
}

impl LanguageService {
    /// Creates the handler of a connection. The closure receives the handle of the editor, and returns a
    /// [`LanguageServer`], or a `LanguageService` with your own methods.
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
        self.router = self.router.merge(router);
        self
    }

    /// Makes this the only service of the process: it shares this lifecycle, and ends when the editor's process
    /// (`processId` of `initialize`) has ended.
    pub(crate) fn for_process(self, lifecycle: Arc<Lifecycle>) -> Self {
        Self { lifecycle, ends_with_editor: true, ..self }
    }

    fn initialize(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        if let Some(reporters) = &self.reporters {
            reporters.negotiate(call.params.as_ref());
        }
        let editor = self.ends_with_editor.then(|| editor_process::id(call.params.as_ref()));
        let answer = self.router.call(call, cx);
        let mut initializing = Initializing { lifecycle: self.lifecycle.clone(), is_ok: false };
        Box::pin(async move {
            let outcome = answer.await;
            initializing.is_ok = outcome.is_ok();
            if let (true, Some(Some(editor))) = (initializing.is_ok, editor) {
                let lifecycle = initializing.lifecycle.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = editor_process::ended(editor) => lifecycle.end(),
                        () = lifecycle.ended() => {}
                    }
                });
            }
            outcome
        })
    }

    fn exit(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let (lifecycle, peer) = (self.lifecycle.clone(), cx.peer().cloned());
        let handled = self.router.notify(notification, cx);
        Box::pin(async move {
            handled.await;
            lifecycle.end();
            if let Ok(peer) = peer {
                // In a task, because the connection closes only after this notification is handled.
                tokio::spawn(async move { peer.close().await });
            }
        })
    }
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
        let router = language_server::router(&server);
        let lifecycle = Arc::new(Lifecycle::new());
        Self { router, lifecycle, reporters: None, ends_with_editor: false }
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
            _ => self.router.call(call, cx),
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
        } else if self.lifecycle.admits_notification(method) {
            if let (Some(reporters), "window/workDoneProgress/cancel") = (&self.reporters, method) {
                reporters.cancel(notification.params.as_ref());
            }
            self.router.notify(notification, cx)
        } else {
            tracing::debug!(
                method,
                "notification dropped: the server is not initialized, or shut down"
            );
            Box::pin(std::future::ready(()))
        }
    }
}
