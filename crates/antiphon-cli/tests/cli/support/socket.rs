//! What carries bytes to a server: TCP, a Unix socket, or TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::PATIENCE;

/// A connection, whose every wait ends.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Whom a client believes.
pub(crate) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// The certificates of this file, and no other.
    pub(crate) fn in_file(path: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = rustls::crypto::ring::default_provider();
        let config = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(config.into())
    }
}

impl Socket {
    pub(crate) fn tcp(address: &str) -> Self {
        Self::Tcp(connect(address))
    }

    pub(crate) fn unix(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::Unix(socket)
    }

    pub(crate) fn tls(address: &str, trust: &Trust) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(trust.0.clone(), name).unwrap();
        Self::Tls(Box::new(StreamOwned::new(session, connect(address))))
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write).unwrap(),
            Self::Unix(socket) => socket.shutdown(Shutdown::Write).unwrap(),
            Self::Tls(stream) => {
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        }
    }

    /// The socket itself.
    pub(crate) fn bare(&self) -> &TcpStream {
        match self {
            Self::Tcp(socket) => socket,
            _ => panic!("only TCP is needed"),
        }
    }
}

fn connect(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    /// What is written has left: nobody flushes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
            Self::Tls(stream) => {
                let written = stream.write(bytes)?;
                stream.flush()?;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
