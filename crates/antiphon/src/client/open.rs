//! Opens the connection of a client for each kind of endpoint.

use std::io;
use std::sync::{Arc, Mutex};

#[cfg(any(feature = "tcp", all(feature = "unix", unix), feature = "child"))]
use antiphon_core::framing::Framing;
#[cfg(feature = "ws")]
use http::HeaderMap;

use super::{Client, ClientBuilder, OpenConnection, OwnedConnection};
#[cfg(all(feature = "unix", unix))]
use crate::connection::Connection;
use crate::endpoint::{Endpoint, without_feature};
use crate::engine::Settings;
use crate::peer::{self, ConnectionConfig, Wire};
#[cfg(any(feature = "tcp", feature = "child", feature = "memory"))]
use crate::transport;
use crate::transport::Transport;
#[cfg(feature = "http")]
use crate::transport::http::client::HttpClientLayer;
#[cfg(any(feature = "tcp", all(feature = "unix", unix)))]
use crate::transport::stream::FramedStream;

impl ClientBuilder {
    pub(super) async fn open(self, endpoint: &Endpoint) -> io::Result<Client> {
        match endpoint {
            #[cfg(not(feature = "tls"))]
            secure if secure.is_secure() => Err(without_feature(secure)),
            #[cfg(feature = "http")]
            Endpoint::Http {
                authority,
                path,
                #[cfg(feature = "tls")]
                secure,
                ..
            } => {
                let layers = self.request_layers();
                let settings = transport::http::client::HttpClientSettings {
                    headers: &self.headers,
                    limits: &self.limits,
                    http2: self.http2,
                    #[cfg(feature = "tls")]
                    tls: secure.then_some(&self.tls),
                    layers: &layers,
                };
                let caller = transport::http::client::HttpCaller::new(
                    authority,
                    path,
                    &settings,
                    &self.settings(),
                );
                let caller = Arc::new(caller?);
                Ok(Client::new(caller, self.timeout, OwnedConnection::None))
            }
            #[cfg(all(feature = "ws", feature = "tls"))]
            Endpoint::Ws { authority, path, secure: true } => {
                let (headers, limits) = (self.upgrade_headers(), &self.limits);
                let connecting =
                    transport::ws::connect_tls(authority, path, &headers, limits, &self.tls);
                let wire = connecting.await?;
                Ok(self.attach(wire))
            }
            #[cfg(feature = "ws")]
            Endpoint::Ws { authority, path, .. } => {
                let headers = self.upgrade_headers();
                let wire = transport::ws::connect(authority, path, &headers, &self.limits).await?;
                Ok(self.attach(wire))
            }
            #[cfg(feature = "tls")]
            Endpoint::Tcp { authority, framing, secure: true } => {
                let connector = transport::tls::Connector::new(&self.tls, &authority.host, &[])?;
                let stream = transport::tcp::connect(&authority.to_string(), &self.limits).await?;
                let stream = connector.connect(stream).await?;
                let framing = Some(self.framing(*framing));
                let facts = transport::tcp::tls_facts(&stream);
                let wire = FramedStream::wire(stream, facts, framing, &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(feature = "tcp")]
            Endpoint::Tcp { authority, framing, .. } => {
                let stream = transport::tcp::connect(&authority.to_string(), &self.limits).await?;
                let facts = transport::tcp::facts(&stream);
                let framing = Some(self.framing(*framing));
                let wire = FramedStream::wire(stream, facts, framing, &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(all(feature = "unix", unix))]
            Endpoint::Unix { path, framing } => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                let framing = self.framing(framing.or(self.dialect.unix_framing));
                let (facts, framing) = (Connection::new("unix"), Some(framing));
                let wire = FramedStream::wire(stream, facts, framing, &self.limits);
                Ok(self.attach(wire))
            }
            #[cfg(feature = "child")]
            Endpoint::Exec { command, framing } => {
                let framing = self.framing(*framing);
                let (child, wire) = transport::child::spawn(command, framing, &self.limits)?;
                Ok(self.attach_then(wire, transport::child::reap(child)))
            }
            #[cfg(feature = "memory")]
            Endpoint::Memory { name } => {
                let absent = || {
                    io::Error::new(
                        io::ErrorKind::NotFound,
                        "no server listens under this name; start a server with this name first",
                    )
                };
                let transport = transport::memory::connect(name).await.ok_or_else(absent)?;
                Ok(self.attach(transport::memory::wire(transport)))
            }
            Endpoint::Stdio { .. } => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "stdio: is for servers only; use exec:command to call a process",
            )),
            #[allow(unreachable_patterns, reason = "with every feature there is nothing left")]
            _ => Err(without_feature(endpoint)),
        }
    }

    pub(super) fn attach(self, wire: Wire<impl Transport>) -> Client {
        self.attach_then(wire, std::future::ready(()))
    }

    /// Returns the layers around each HTTP request. The layer that adds tokens is the innermost, so no other layer
    /// sees a token.
    #[cfg(feature = "http")]
    fn request_layers(&self) -> Vec<HttpClientLayer> {
        #[cfg_attr(not(feature = "jwt"), allow(unused_mut))]
        let mut layers = self.http_layers.clone();
        #[cfg(feature = "jwt")]
        if let Some(secret) = &self.jwt {
            layers.insert(0, transport::http::client::token_layer(secret.clone()));
        }
        layers
    }

    /// Returns the headers of the upgrade to a WebSocket.
    #[cfg(feature = "ws")]
    fn upgrade_headers(&self) -> HeaderMap {
        #[cfg_attr(not(feature = "jwt"), allow(unused_mut))]
        let mut headers = self.headers.clone();
        #[cfg(feature = "jwt")]
        if let Some(secret) = &self.jwt {
            headers.insert(http::header::AUTHORIZATION, secret.authorization());
        }
        headers
    }

    /// Returns the framing of a stream: that of the endpoint, else that of the dialect, else one message per line.
    #[cfg(any(feature = "tcp", all(feature = "unix", unix), feature = "child"))]
    fn framing(&self, named: Option<Framing>) -> Framing {
        named.or(self.dialect.client_framing).unwrap_or(Framing::Line)
    }

    /// The settings of the engine.
    pub(super) fn settings(&self) -> Settings {
        let settings = Settings::new(self.limits.clone());
        let settings = settings.in_dialect(self.dialect.clone(), self.null_params);
        Settings { tap: self.tap.clone(), ..settings }
    }

    /// Spawns the connection as a task, which runs `after` when the connection has ended.
    fn attach_then(
        self,
        wire: Wire<impl Transport>,
        after: impl Future<Output = ()> + Send + 'static,
    ) -> Client {
        let settings = self.settings();
        let config = ConnectionConfig { handler: self.handler, settings: Arc::new(settings) };
        let (peer, connection) = peer::connect(wire, config);
        let task = tokio::spawn(async move {
            connection.await;
            after.await;
        });
        let open = OpenConnection { peer: peer.clone(), task: Mutex::new(Some(task)) };
        Client::new(Arc::new(peer), self.timeout, OwnedConnection::Single(Arc::new(open)))
    }
}
