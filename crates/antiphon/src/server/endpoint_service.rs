//! Serves the connections of one endpoint: TLS if the endpoint has it, then framed messages or HTTP.
//!
//! A TLS handshake runs in the task of its connection. It counts against the connection limit, and
//! delays neither the accept loop nor a shutdown.

use std::io;
#[cfg(feature = "tcp")]
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::listener::{Protocol, SourceKind};
use super::wire_service::WireService;
use crate::BoxFuture;
use crate::connection::Connection;
#[cfg(feature = "tls")]
use crate::io::tls::{Acceptor, HTTP2, HandshakeError, TlsStream};
use crate::peer::{ConnectionPermit, Wire};
#[cfg(feature = "http")]
use crate::transport::http::{HttpService, listener::HttpServer, remote::Remote};
use crate::transport::stream::FramedStream;
#[cfg(feature = "tcp")]
use crate::transport::tcp;

/// Serves the connections of one endpoint.
pub(super) struct EndpointService {
    pub(super) service: WireService,
    protocol: EndpointProtocol,
    #[cfg(feature = "tls")]
    tls: Option<Acceptor>,
}

/// The protocol of an endpoint, with its services.
enum EndpointProtocol {
    Framed(Option<antiphon_core::framing::Framing>),
    #[cfg(feature = "http")]
    Http(Box<(HttpService, HttpServer)>),
}

impl EndpointService {
    pub(super) fn new(
        service: WireService,
        secure: bool,
        source: &SourceKind,
        protocol: &Protocol,
    ) -> io::Result<Self> {
        #[cfg(feature = "tls")]
        let tls = match secure {
            false => None,
            true => Some(super::tls::acceptor(&service, protocol)?),
        };
        let protocol = match protocol {
            Protocol::Framed(framing) => EndpointProtocol::Framed(*framing),
            #[cfg(feature = "http")]
            Protocol::Http { path, websocket_only } => {
                let http = service.http(source.is_loopback(), path, *websocket_only);
                let server = HttpServer::new(service.settings.clone());
                EndpointProtocol::Http(Box::new((http, server)))
            }
        };
        // Some features leave one of them unused.
        let _ = (secure, source);
        Ok(Self {
            service,
            protocol,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    #[cfg(feature = "tcp")]
    pub(super) fn serve_tcp(
        self: &Arc<Self>,
        stream: tokio::net::TcpStream,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()> {
        tcp::prepare(&stream, &self.service.settings.limits);
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            let endpoint = self.clone();
            return Box::pin(async move {
                if let Some(stream) = endpoint.handshake(stream).await {
                    let facts = tcp::tls_facts(&stream);
                    endpoint.serve_stream(stream, facts, permit).await;
                }
            });
        }
        let facts = tcp::facts(&stream);
        self.serve_stream(stream, facts, permit)
    }

    /// Serves a connection after its TLS handshake, if it has one.
    pub(super) fn serve_stream<S>(
        &self,
        stream: S,
        facts: Connection,
        permit: ConnectionPermit,
    ) -> BoxFuture<'static, ()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match &self.protocol {
            EndpointProtocol::Framed(_) => {
                self.service.serve_wire(self.wire(stream, facts), permit)
            }
            #[cfg(feature = "http")]
            EndpointProtocol::Http(http) => {
                let (service, server) = &**http;
                let service = service.for_one(Remote::from_facts(&facts));
                let served = server.serve(stream, service, self.service.registry.stopping());
                Box::pin(futures_util::FutureExt::map(served, move |()| drop(permit)))
            }
        }
    }

    #[cfg(feature = "tcp")]
    pub(super) fn refuse_tcp(
        self: &Arc<Self>,
        stream: tokio::net::TcpStream,
    ) -> BoxFuture<'static, ()> {
        tcp::prepare(&stream, &self.service.settings.limits);
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            let endpoint = self.clone();
            return Box::pin(async move {
                if let Some(stream) = endpoint.handshake(stream).await {
                    let facts = tcp::tls_facts(&stream);
                    let is_http2 = stream.protocol() == Some(HTTP2[0]);
                    endpoint.refuse(stream, facts, is_http2).await;
                }
            });
        }
        let facts = tcp::facts(&stream);
        self.refuse_stream(stream, facts)
    }

    /// Sends the error that the connection limit is reached.
    pub(super) fn refuse_stream<S>(&self, stream: S, facts: Connection) -> BoxFuture<'static, ()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.refuse(stream, facts, false)
    }

    /// Sends the error that the connection limit is reached. `is_http2` means that HTTP/2 was negotiated
    /// in the TLS handshake.
    fn refuse<S>(&self, stream: S, facts: Connection, is_http2: bool) -> BoxFuture<'static, ()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let _ = is_http2;
        match &self.protocol {
            EndpointProtocol::Framed(_) => self.service.refuse_wire(self.wire(stream, facts)),
            #[cfg(feature = "http")]
            EndpointProtocol::Http(http) => {
                let (service, server) = &**http;
                let service = service.for_one(Remote::from_facts(&facts));
                Box::pin(server.refuse(stream, service, is_http2))
            }
        }
    }

    fn wire<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        facts: Connection,
    ) -> Wire<FramedStream<S>> {
        let limits = &self.service.settings.limits;
        let framing = match &self.protocol {
            EndpointProtocol::Framed(framing) => *framing,
            #[cfg(feature = "http")]
            EndpointProtocol::Http(_) => None,
        };
        FramedStream::wire(stream, facts, framing, limits)
    }

    /// Completes the TLS handshake, unless the server stops first. A client that does not speak TLS
    /// gets an error in plain text.
    #[cfg(feature = "tls")]
    async fn handshake(&self, stream: tokio::net::TcpStream) -> Option<TlsStream> {
        let stopping = self.service.registry.stopping();
        let done = tokio::select! {
            biased;
            () = stopping.cancelled() => return None,
            done = self.tls.as_ref()?.accept(stream) => done,
        };
        match done {
            Ok(stream) => Some(stream),
            Err(error) => {
                self.require_tls(error).await;
                None
            }
        }
    }

    #[cfg(feature = "tls")]
    async fn require_tls(&self, error: HandshakeError) {
        match &self.protocol {
            EndpointProtocol::Framed(framing) => {
                error.reply_and_close(&super::tls::requires_tls(*framing)).await;
            }
            #[cfg(feature = "http")]
            EndpointProtocol::Http(_) => error.reply_and_close(super::tls::REQUIRES_HTTPS).await,
        }
    }
}

impl SourceKind {
    #[cfg(feature = "http")]
    fn is_loopback(&self) -> bool {
        let address = match self {
            #[cfg(feature = "tcp")]
            Self::Tcp(socket) => socket.local_addr().ok(),
            #[cfg(all(feature = "unix", unix))]
            Self::Unix(_) => None,
            Self::Foreign(listener) => listener.local_addr(),
        };
        // An IPv4 address may be mapped to IPv6.
        address.is_some_and(|address| address.ip().to_canonical().is_loopback())
    }
}
