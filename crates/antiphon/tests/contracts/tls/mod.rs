//! TLS: trust, protocol versions, and peers that do not speak TLS.

mod connections;
mod trust;
mod versions;

use std::future::IntoFuture as _;

use antiphon::transport::tls::rustls::pki_types::pem::PemObject as _;
use antiphon::transport::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use antiphon::transport::tls::rustls::{self, ServerConfig};
use antiphon::transport::tls::{PeerCertificates, TlsClient, TlsServer};
use antiphon::{CallError, Client, ConnectError, Context, ErrorChain, Limits, Router, Server};

use crate::pki::{Certified, local, trusting};
use crate::support::within;

pub(super) const SECURE: [&str; 3] =
    ["https://127.0.0.1:0", "wss://127.0.0.1:0", "tls://127.0.0.1:0"];

/// Methods that return facts of the connection, and one that calls back.
pub(super) fn service() -> Router {
    Router::new()
        .method("transport", |(): (), cx: Context| async move { Ok(cx.connection().transport) })
        .method("shown", |(): (), cx: Context| async move {
            let shown = cx.extensions().get::<PeerCertificates>();
            Ok(shown.map(|shown| shown.chain().map(<[u8]>::to_vec).collect::<Vec<_>>()))
        })
        .method("remote", |(): (), cx: Context| async move {
            Ok(cx.connection().remote.map(|remote| remote.to_string()))
        })
        .method("ask", |(): (), cx: Context| async move {
            Ok(cx.peer()?.call::<String>("name", ()).await?)
        })
}

pub(super) async fn serve_tls(endpoint: &str, tls: TlsServer, limits: Limits) -> String {
    let server = Server::bind(endpoint).await.unwrap().tls(tls).limits(limits);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(service()));
    address
}

/// The result of one call, or the error of connecting or calling. HTTP connects at the first call.
pub(super) async fn attempt(tls: TlsClient, address: &str) -> Result<Option<Vec<Vec<u8>>>, String> {
    let connected = Client::builder().tls(tls).connect(address).await;
    let client = connected.map_err(|error| match error {
        ConnectError::Failed { source, .. } => ErrorChain(&source).to_string(),
        other => other.to_string(),
    })?;
    let called = within(client.call("shown", ()).into_future()).await;
    called.map_err(|error: CallError| ErrorChain(&error).to_string())
}

/// A rustls configuration of a server with these ALPN protocols.
pub(super) fn speaking(protocols: &[&[u8]]) -> TlsServer {
    let provider = rustls::crypto::ring::default_provider();
    let chain = vec![CertificateDer::from(local().der.clone())];
    let key = PrivateKeyDer::from_pem_slice(local().key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider.into());
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.into()
}

pub(super) fn showing(certified: &Certified) -> TlsClient {
    trusting().client_certificate(&certified.chain, &certified.key).unwrap()
}
