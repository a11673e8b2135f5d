//! Serves the connections of a server with its handler and settings.

use std::io;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Outcome};
use futures_util::FutureExt as _;

use crate::BoxFuture;
use crate::call::Invocation;
use crate::catch_unwind::Panicked;
use crate::context::Context;
use crate::engine::Settings;
use crate::error::CloseReason;
use crate::peer::{
    ConnectionConfig, ConnectionPermit, ConnectionRegistry, RegisteredPeer, Wire, connect,
};
use crate::service::Handler;
#[cfg(any(feature = "http", feature = "tls"))]
use crate::transport;
use crate::transport::Transport;
#[cfg(feature = "http")]
use crate::transport::http::HttpService;

/// The handler and the settings of a server, shared by all its endpoints and threads.
#[derive(Clone)]
pub(super) struct WireService {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) settings: Arc<Settings>,
    pub(super) registry: ConnectionRegistry,
    #[cfg(feature = "http")]
    pub(super) http: transport::http::HttpSettings,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<transport::tls::TlsServer>,
}

impl WireService {
    /// Serves a connection until it ends.
    pub(super) fn serve_wire(
        &self,
        wire: Wire<impl Transport>,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()> {
        match self.open(wire) {
            Ok((registered, connection)) => {
                Box::pin(connection.map(move |_reason| drop((registered, permit))))
            }
            Err(Panicked) => Box::pin(std::future::ready(())),
        }
    }

    /// Serves the only connection of an endpoint. Fails if the connection failed, for example because its
    /// output could not be written. The end of input is not a failure.
    pub(super) fn serve_single(
        &self,
        wire: Wire<impl Transport>,
    ) -> BoxFuture<'static, io::Result<()>> {
        let opened = self.open(wire);
        let registry = self.registry.clone();
        Box::pin(async move {
            let Ok((registered, connection)) = opened else {
                return Err(io::Error::other("`on_connect` panicked; see the log"));
            };
            let served = registry.spawn(Box::pin(connection.map(move |reason| {
                drop(registered);
                reason
            })));
            match served.await {
                Ok(Some(reason)) if !reason.is_clean() => Err(io::Error::other(reason)),
                // The transport or the tap panicked.
                Err(panic) => Err(io::Error::other(panic)),
                Ok(_) => Ok(()),
            }
        })
    }

    /// Opens a connection and registers it for the shutdown. The future drives the connection to its end
    /// and returns the reason.
    fn open<T: Transport>(
        &self,
        mut wire: Wire<T>,
    ) -> Result<(RegisteredPeer, impl Future<Output = CloseReason> + Send + use<T>), Panicked> {
        self.settings.complete(&mut wire.facts)?;
        let (peer, connection) = connect(wire, self.config(self.handler.clone()));
        Ok((self.registry.enter(&peer), connection))
    }

    /// Answers every request of a connection over the limit with an error.
    pub(super) fn refuse_wire(&self, wire: Wire<impl Transport>) -> BoxFuture<'static, ()> {
        let (peer, connection) = connect(wire, self.config(Arc::new(Busy)));
        peer.link().send_error(&Busy::error());
        Box::pin(connection.map(drop))
    }

    fn config(&self, handler: Arc<dyn Handler>) -> ConnectionConfig {
        ConnectionConfig { handler: Some(handler), settings: self.settings.clone() }
    }

    /// The HTTP service of one endpoint.
    #[cfg(feature = "http")]
    pub(super) fn http(&self, is_loopback: bool, path: &str, websocket_only: bool) -> HttpService {
        let http = self.http.clone().loopback_only(is_loopback);
        let service = HttpService::build(self.handler.clone(), self.settings.clone(), http)
            .at_path(path)
            .among(self.registry.clone());
        if websocket_only { service.websocket_only() } else { service }
    }
}

/// The handler of a connection over the limit.
struct Busy;

impl Busy {
    fn error() -> ErrorObject {
        ErrorObject::server_busy("too many connections")
    }
}

impl Handler for Busy {
    fn call(&self, _: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Err(Self::error())))
    }

    fn notify(&self, _: Invocation, _: Context) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
