//! The transports between an editor and the server that it starts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use antiphon::{
    Client, Connection, Dialect, ErrorChain, Handler, Limits, Peer, PerConnection, Server,
};

use crate::lifecycle::Lifecycle;
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
/// `initialize`). The exit code is 0 if the editor sent `shutdown` first, and 1 otherwise. The protocol uses stdout,
/// so write logs to stderr.
pub async fn serve_stdio<S: Into<LanguageService>>(
    make: impl Fn(Editor) -> S + Send + Sync + 'static,
) -> ExitCode {
    Channel::Stdio.serve(make).await
}

/// Returns the limits of [`Dialect::lsp`], which are the default of a server: 256 MiB for a message and for a response,
/// and no stall timeout, because an editor may be suspended. While a notification handler waits for the editor, up to
/// 16,384 messages with a total of 256 MiB can queue behind it. Handlers that still run at `exit` have one second to
/// finish.
pub fn limits() -> Limits {
    Dialect::lsp().limits()
}

/// An argument `--pipe` or `--socket` without a valid path or port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid argument `{argument}`: expected {expected}")]
pub struct InvalidChannel {
    argument: String,
    expected: &'static str,
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
            let (value, expected) = (value.unwrap_or_default(), "--pipe=PATH or --socket=PORT");
            let invalid = || InvalidChannel { argument: argument.clone(), expected };
            match name {
                "--stdio" => channel = Self::Stdio,
                "--pipe" if value.is_empty() => return Err(invalid()),
                "--pipe" => channel = Self::Pipe(value.into()),
                "--socket" => channel = Self::Socket(value.parse().map_err(|_| invalid())?),
                _ => {}
            }
        }
        Ok(channel)
    }

    /// Serves one editor over this channel. See [`serve_stdio`].
    pub async fn serve<S: Into<LanguageService>>(
        self,
        make: impl Fn(Editor) -> S + Send + Sync + 'static,
    ) -> ExitCode {
        let lifecycle = Arc::new(Lifecycle::new());
        let of_service = lifecycle.clone();
        let handler = PerConnection::new(move |_: &Connection, peer: Peer| {
            LanguageService::for_peer(peer, &make).for_process(of_service.clone())
        });
        if let Err(error) = self.run(handler, &lifecycle).await {
            eprintln!("cannot serve the editor: {}", ErrorChain(&*error));
            return ExitCode::FAILURE;
        }
        if lifecycle.is_shut_down() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Serves until the connection or the lifecycle has ended.
    async fn run(self, handler: impl Handler, lifecycle: &Lifecycle) -> Result<(), BoxError> {
        let endpoint = match self {
            Self::Stdio => {
                let server = Server::bind("stdio+header:").await?.dialect(Dialect::lsp());
                return Ok(server.serve_until(handler, lifecycle.ended()).await?);
            }
            Self::Pipe(path) => format!("unix+header:{}", path.display()),
            Self::Socket(port) => format!("tcp+header://127.0.0.1:{port}"),
        };
        let client = Client::builder().dialect(Dialect::lsp()).limits(limits()).handler(handler);
        let client = client.connect(endpoint.as_str()).await?;
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
        for wrong in ["server --pipe", "server --pipe=", "server --socket=x", "server --socket"] {
            assert!(channel(wrong).unwrap_err().to_string().contains("--socket=PORT"), "{wrong}");
        }
    }
}
