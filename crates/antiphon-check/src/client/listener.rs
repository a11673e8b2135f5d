//! The listeners of the scenarios, and their addresses in the client's command.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::time::sleep;

use super::codec::ClientWire;
use super::connection::ClientConnection;
use super::scenario_state::ScenarioState;

/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(10);

/// The transport of a client check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum ClientTransport {
    /// HTTP/1.1
    Http,
    /// WebSocket
    Ws,
    /// TCP
    Tcp,
    /// TCP with Content-Length headers, as in language servers
    #[cfg_attr(feature = "clap", value(name = "tcp+header"))]
    TcpHeader,
    /// A Unix socket
    Unix,
    /// The command's stdin and stdout
    Stdio,
}

/// The framing of messages on a raw stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum ClientFraming {
    /// One message per line
    Line,
    /// Content-Length headers, as in language servers
    Header,
}

/// The listener of a scenario. Dropping it removes its socket file.
pub(super) enum ScenarioListener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
    /// The pipes of the client process are the connection.
    Stdio,
}

/// The values of `{endpoint}`, `{address}` and `{port}` in the command.
#[derive(Debug)]
pub(super) struct ListenAddress {
    endpoint: String,
    /// `host:port`, or the path of the socket.
    address: String,
    port: String,
}

impl ClientTransport {
    /// Returns the wire; `None` if the framing contradicts the transport.
    pub(super) fn wire(self, framing: Option<ClientFraming>) -> Option<ClientWire> {
        match (self, framing) {
            (Self::Http, None) => Some(ClientWire::Http),
            (Self::Ws, None) => Some(ClientWire::Ws),
            (Self::Tcp | Self::Unix | Self::Stdio, None | Some(ClientFraming::Line)) => {
                Some(ClientWire::Line)
            }
            (Self::Tcp | Self::Unix | Self::Stdio, Some(ClientFraming::Header))
            | (Self::TcpHeader, None | Some(ClientFraming::Header)) => Some(ClientWire::Header),
            (Self::Http | Self::Ws, Some(_)) | (Self::TcpHeader, Some(ClientFraming::Line)) => None,
        }
    }

    /// Listens on the loopback address, or on a Unix socket that only this user can open.
    pub(super) async fn listen(
        self,
        wire: ClientWire,
    ) -> io::Result<(ScenarioListener, ListenAddress)> {
        let scheme = self.scheme(wire);
        match self {
            Self::Stdio => {
                Ok((ScenarioListener::Stdio, ListenAddress::of(&scheme, "", String::new())))
            }
            Self::Unix => {
                let directory = scratch()?;
                let path = directory.join("s");
                let socket = UnixListener::bind(&path)?;
                let address = ListenAddress::of(&scheme, &path.to_string_lossy(), String::new());
                Ok((ScenarioListener::Unix(socket, directory), address))
            }
            Self::Http | Self::Ws | Self::Tcp | Self::TcpHeader => {
                let socket = TcpListener::bind(("127.0.0.1", 0)).await?;
                let port = socket.local_addr()?.port().to_string();
                let address = format!("127.0.0.1:{port}");
                Ok((ScenarioListener::Tcp(socket), ListenAddress::of(&scheme, &address, port)))
            }
        }
    }

    /// Returns the beginning of its endpoints.
    fn scheme(self, wire: ClientWire) -> String {
        let framing = if wire == ClientWire::Header { "+header" } else { "" };
        match self {
            Self::Http | Self::Ws => format!("{}://", self.name()),
            Self::Tcp | Self::TcpHeader => format!("tcp{framing}://"),
            Self::Unix | Self::Stdio => format!("{}{framing}:", self.name()),
        }
    }

    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ws => "ws",
            Self::Tcp => "tcp",
            Self::TcpHeader => "tcp+header",
            Self::Unix => "unix",
            Self::Stdio => "stdio",
        }
    }
}

impl ListenAddress {
    fn of(scheme: &str, address: &str, port: String) -> Self {
        Self { endpoint: format!("{scheme}{address}"), address: address.to_owned(), port }
    }

    /// Returns the command with its placeholders replaced.
    pub(super) fn filled_in(&self, argv: &[String]) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{endpoint}", &self.endpoint)
                .replace("{address}", &self.address)
                .replace("{port}", &self.port)
        };
        argv.iter().map(fill).collect()
    }

    /// Reports whether the command has a placeholder.
    pub(super) fn is_wanted(argv: &[String]) -> bool {
        let marks = ["{endpoint}", "{address}", "{port}"];
        argv.iter().any(|word| marks.iter().any(|mark| word.contains(mark)))
    }
}

impl ScenarioListener {
    /// Accepts the next connection; never returns for pipes.
    pub(super) async fn next(&self, state: &Arc<ScenarioState>) -> ClientConnection {
        loop {
            match self.accept(Arc::clone(state)).await {
                Ok(connection) => return connection,
                // The client is already gone, or this process has too many files open. Both pass.
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn accept(&self, state: Arc<ScenarioState>) -> io::Result<ClientConnection> {
        match self {
            Self::Tcp(socket) => Ok(ClientConnection::tcp(state, socket.accept().await?.0)),
            Self::Unix(socket, _) => Ok(ClientConnection::unix(state, socket.accept().await?.0)),
            Self::Stdio => std::future::pending().await,
        }
    }
}

impl Drop for ScenarioListener {
    fn drop(&mut self) {
        if let Self::Unix(_, directory) = self {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Creates a directory that only this user can enter, for one socket.
fn scratch() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (id, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!("antiphon-check-{id}-{next}"));
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}
