//! The transports between an editor and the server that it starts.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use antiphon::{
    Client, CloseReason, Connection, Dialect, Direction, Endpoint, EndpointError, ErrorChain,
    Framing, Handler, Limits, Server, Tap, TappedMessage,
};

use crate::faults::{Faults, excerpt};
use crate::lifecycle::Lifecycle;
use crate::single_connection::single_connection;
use crate::{Editor, LanguageService};

/// The connection between an editor and the server that it has started.
///
/// Editors pass it as an argument: `--stdio`, `--pipe=PATH` or `--socket=PORT`. With a pipe or a socket, the editor
/// listens and the server connects.
///
/// ```no_run
/// use antiphon_lsp::Channel;
/// # use antiphon::{Context, ErrorObject};
/// # use antiphon_lsp::types::{InitializeParams, InitializeResult};
/// # use antiphon_lsp::{Editor, LanguageServer};
/// # struct Backend { editor: Editor }
/// # impl LanguageServer for Backend {
/// #     async fn initialize(&self, _: InitializeParams, _: Context) -> Result<InitializeResult, ErrorObject> {
/// #         Ok(InitializeResult::default())
/// #     }
/// # }
///
/// #[tokio::main]
/// async fn main() -> Result<std::process::ExitCode, antiphon_lsp::InvalidChannel> {
///     Ok(Channel::from_args(std::env::args())?.serve(|editor| Backend { editor }).await)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channel {
    /// Stdin and stdout of this process. Nothing else may write to stdout.
    Stdio,
    /// A Unix domain socket on which the editor listens.
    Pipe(PathBuf),
    /// A TCP port of this machine on which the editor listens.
    Socket(u16),
}

/// Serves the editor that has started this process, over stdin and stdout. Most language servers call only this
/// function in `main`; see [`LanguageServer`](crate::LanguageServer).
///
/// The closure receives the handle of the editor, and returns the server, or a [`LanguageService`] with your own
/// methods. It runs once.
///
/// Returns when the editor sends `exit`, closes stdin, or (on Unix) when the editor's process ends (`processId` of
/// `initialize`). Handlers that run then have one second to finish, and the editor has two seconds to read what is
/// left. The exit code is 0 if the server has handled `shutdown`, and 1 otherwise. The protocol uses stdout, so write
/// logs to stderr.
///
/// A process that is not visible, because the editor runs in another container or on another machine, is not watched.
/// The log reports that the process is not watched, each notification that cannot be decoded, and each message that is
/// not valid JSON-RPC. Without a `tracing` subscriber, the first of these messages is written to stderr.
pub async fn serve_stdio<S: Into<LanguageService>>(
    make: impl FnOnce(Editor) -> S + Send + 'static,
) -> ExitCode {
    Channel::Stdio.serve(make).await
}

/// An argument `--pipe` or `--socket` without a valid path or port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidChannel(#[from] InvalidArgument);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum InvalidArgument {
    #[error("no path for --pipe: use --pipe=PATH")]
    NoPath,
    #[error("no port for --socket: use --socket=PORT")]
    NoPort,
    #[error("invalid port `{0}` for --socket: use --socket=PORT")]
    Port(String),
}

impl Channel {
    /// Parses the channel from the arguments of this process: `--stdio`, `--pipe=PATH`, `--pipe PATH`, `--socket=PORT`
    /// or `--socket PORT`. The last one wins; the default is stdio. Other arguments are ignored.
    ///
    /// # Errors
    /// Fails if a pipe has no path, or a socket has no valid port.
    ///
    /// ```
    /// use antiphon_lsp::Channel;
    ///
    /// let args = ["my-server", "--socket=7000", "--clientProcessId=17"].map(str::to_owned);
    /// assert_eq!(Channel::from_args(args)?, Channel::Socket(7000));
    /// # Ok::<(), antiphon_lsp::InvalidChannel>(())
    /// ```
    pub fn from_args(args: impl IntoIterator<Item = String>) -> Result<Self, InvalidChannel> {
        let mut channel = Self::Stdio;
        let mut args = args.into_iter().peekable();
        while let Some(argument) = args.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), args.peek().cloned()),
            };
            let value = value.unwrap_or_default();
            match name {
                "--stdio" => channel = Self::Stdio,
                "--pipe" if value.is_empty() => return Err(InvalidArgument::NoPath.into()),
                "--pipe" => channel = Self::Pipe(value.into()),
                "--socket" if value.is_empty() => return Err(InvalidArgument::NoPort.into()),
                "--socket" => {
                    let port = value.parse().map_err(|_| InvalidArgument::Port(value))?;
                    channel = Self::Socket(port);
                }
                _ => {}
            }
        }
        Ok(channel)
    }

    /// Serves one editor over this channel. See [`serve_stdio`].
    pub async fn serve<S: Into<LanguageService>>(
        self,
        make: impl FnOnce(Editor) -> S + Send + 'static,
    ) -> ExitCode {
        self.server().serve(make).await
    }

    /// Returns a server of this channel, to set limits or a tap.
    ///
    /// ```no_run
    /// use antiphon::{Dialect, Limits, TappedMessage};
    /// use antiphon_lsp::{Channel, LanguageServer};
    ///
    /// async fn serve(server: impl LanguageServer) -> std::process::ExitCode {
    ///     let tap = |message: &TappedMessage<'_>| {
    ///         eprintln!("{:?} {}", message.direction, String::from_utf8_lossy(message.bytes));
    ///     };
    ///     let limits = Limits { in_flight: 64, ..Dialect::lsp().limits() };
    ///     Channel::Stdio.server().limits(limits).tap(tap).serve(|_| server).await
    /// }
    /// ```
    pub fn server(self) -> ChannelServer {
        ChannelServer { channel: self, limits: Dialect::lsp().limits(), tap: None }
    }

    /// Returns the endpoint of the editor; `None` for stdio.
    fn endpoint(self) -> Result<Option<Endpoint>, EndpointError> {
        Ok(match self {
            Self::Stdio => None,
            Self::Pipe(path) => Some(Endpoint::Unix { path, framing: Some(Framing::Header) }),
            Self::Socket(port) => Some(format!("tcp+header://127.0.0.1:{port}").parse()?),
        })
    }
}

/// A server of one editor over a [`Channel`], with settings. Created by [`Channel::server`].
#[must_use = "a server serves only when `serve` is awaited"]
pub struct ChannelServer {
    channel: Channel,
    limits: Limits,
    tap: Option<Box<dyn Tap>>,
}

impl ChannelServer {
    /// Sets the limits of the connection. The default is [`Dialect::limits`] of [`Dialect::lsp`]: 256 MiB for a message
    /// and for a response, and no stall timeout, because an editor may be suspended. While a notification handler waits
    /// for the editor, up to 16,384 messages with a total of 256 MiB can queue behind it. Handlers that still run at
    /// `exit` have one second to finish.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Passes every message to a [`Tap`]. A second call replaces the tap.
    pub fn tap(mut self, tap: impl Tap) -> Self {
        self.tap = Some(Box::new(tap));
        self
    }

    /// Serves one editor. See [`serve_stdio`].
    pub async fn serve<S: Into<LanguageService>>(
        self,
        make: impl FnOnce(Editor) -> S + Send + 'static,
    ) -> ExitCode {
        let lifecycle = Arc::new(Lifecycle::new());
        let faults = Faults::stderr();
        let (of_service, of_methods) = (lifecycle.clone(), faults.clone());
        let handler = single_connection(move |editor| {
            LanguageService::for_peer(editor, make).for_process(of_service, of_methods)
        });
        if let Err(error) = self.run(handler, &lifecycle, faults).await {
            eprintln!("cannot serve the editor: {}", ErrorChain(&*error));
            return ExitCode::FAILURE;
        }
        if lifecycle.is_shut_down() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Serves until the connection or the lifecycle has ended.
    async fn run(
        self,
        handler: impl Handler,
        lifecycle: &Lifecycle,
        faults: Faults,
    ) -> Result<(), BoxError> {
        let Self { channel, limits, tap } = self;
        let tap = EditorTap { faults, tap };
        let Some(endpoint) = channel.endpoint()? else {
            let server = Server::bind("stdio+header:").await?.dialect(Dialect::lsp());
            let server = server.limits(limits).tap(tap);
            return Ok(server.serve_until(handler, lifecycle.ended()).await?);
        };
        let client = Client::builder().dialect(Dialect::lsp()).limits(limits).tap(tap);
        let client = client.handler(handler).connect(endpoint).await?;
        if let Some(editor) = client.peer() {
            tokio::select! {
                _ = editor.closed() => {}
                () = lifecycle.ended() => {}
            }
        }
        client.close().await;
        Ok(())
    }
}

impl fmt::Debug for ChannelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelServer")
            .field("channel", &self.channel)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The tap of the application, if it has one. It also reports messages of the editor that are not valid JSON-RPC: they
/// reach no method, and a document change in such a message is lost.
struct EditorTap {
    faults: Faults,
    tap: Option<Box<dyn Tap>>,
}

impl Tap for EditorTap {
    fn message(&self, message: &TappedMessage<'_>) {
        if message.direction == Direction::Sent && is_error_without_id(message.bytes) {
            let error = excerpt(&String::from_utf8_lossy(message.bytes));
            tracing::error!(error, "the editor sent a message that is not valid JSON-RPC");
            let effect = "a document change in it is lost";
            let fault = format!("a message of the editor is not valid JSON-RPC, {effect}: {error}");
            self.faults.report_message(&fault);
        }
        if let Some(tap) = &self.tap {
            tap.message(message);
        }
    }

    fn opened(&self, connection: &Connection) {
        self.tap.iter().for_each(|tap| tap.opened(connection));
    }

    fn closed(&self, connection: &Connection, reason: &CloseReason) {
        self.tap.iter().for_each(|tap| tap.closed(connection, reason));
    }
}

/// Whether a message of this side is the error response to a message without a readable id.
fn is_error_without_id(message: &[u8]) -> bool {
    message.ends_with(b"\"id\":null}") && message.starts_with(b"{\"jsonrpc\":\"2.0\",\"error\":")
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_editors_name_the_channel() {
        let channel = |args: &str| Channel::from_args(args.split(' ').map(str::to_owned));
        assert_eq!(channel("server"), Ok(Channel::Stdio));
        assert_eq!(channel("server --log x --stdio"), Ok(Channel::Stdio));
        assert_eq!(channel("server --pipe=/tmp/a=b"), Ok(Channel::Pipe("/tmp/a=b".into())));
        assert_eq!(channel("server --pipe /tmp/a"), Ok(Channel::Pipe("/tmp/a".into())));
        assert_eq!(channel("server --socket 70"), Ok(Channel::Socket(70)));
        for (wrong, error) in [
            ("server --pipe", "no path for --pipe: use --pipe=PATH"),
            ("server --pipe=", "no path for --pipe: use --pipe=PATH"),
            ("server --socket 7x", "invalid port `7x` for --socket: use --socket=PORT"),
            ("server --socket=70000", "invalid port `70000` for --socket: use --socket=PORT"),
            ("server --socket", "no port for --socket: use --socket=PORT"),
        ] {
            assert_eq!(channel(wrong).unwrap_err().to_string(), error, "{wrong}");
        }
    }

    #[test]
    fn the_path_of_a_pipe_stays_as_it_is() {
        for path in ["//tmp/a", "/tmp/a%20b", "relative", "/tmp/a b+line"] {
            let endpoint = Channel::Pipe(path.into()).endpoint().unwrap();
            let framing = Some(Framing::Header);
            assert_eq!(endpoint, Some(Endpoint::Unix { path: path.into(), framing }));
        }
    }
}
