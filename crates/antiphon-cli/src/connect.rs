//! The connection of a client command: its flags, its timeout and its end.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use antiphon::{
    Client, ClientBuilder, ConnectError, Dialect, Direction, Endpoint, Reconnect, TappedMessage,
};
use clap::Args;
use tokio::time::{Instant, timeout, timeout_at};

use crate::answers::{AnswerArgs, AnsweringHandler, Listener};
use crate::dialect::{DialectName, VersionName};
use crate::exit::{CommandError, Exit};
use crate::handshake::HandshakeArgs;
use crate::limits::ConnectionLimits;
use crate::open_connection::OpenConnection;
use crate::quantity::{MaybeSpan, Span};
use crate::request_headers::RequestHeaders;
use crate::secret;
use crate::session::Inbox;
use crate::tls::ClientTls;
use crate::{endpoint, output, waiting_line};

/// The timeout without `--timeout`.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time to close a connection. A child process first sees the end of its stdin, then SIGTERM, then
/// SIGKILL, all within less than this.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);

/// The flags of `call`, `notify`, `batch`, `subscribe`, `session`, `list`, `describe` and `mcp serve`.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Endpoint of the server, such as http://127.0.0.1:8650, unix:/run/app.sock or exec:my-server
    #[arg(value_parser = endpoint::callable)]
    endpoint: Endpoint,
    #[command(flatten)]
    headers: RequestHeaders,
    /// Authenticate to the Engine API of an Ethereum node with new tokens, signed with the secret in this
    /// file
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    jwt_secret: Option<PathBuf>,
    /// Apply the conventions of this dialect of JSON-RPC
    #[arg(long, value_enum, value_name = "NAME")]
    dialect: Option<DialectName>,
    /// Send calls in this version of JSON-RPC [default: 1.0 with --dialect bitcoin or v1, otherwise 2.0]
    #[arg(long, value_enum, value_name = "VERSION")]
    jsonrpc: Option<VersionName>,
    #[command(flatten)]
    handshake: HandshakeArgs,
    #[command(flatten)]
    answers: AnswerArgs,
    /// Use HTTP/2 without negotiation; https:// negotiates it without this flag
    #[arg(long)]
    http2: bool,
    #[command(flatten)]
    tls: ClientTls,
    /// Fail after this long in total, or for each line of a session; 0 or none waits forever
    #[arg(long, value_name = "TIME", default_value_t = DEFAULT_TIMEOUT.into())]
    timeout: MaybeSpan,
    /// Print each message on stderr: --> sent, <-- received
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    limits: ConnectionLimits,
}

impl ConnectArgs {
    /// Connects, does the work, shows its outcome and closes the connection. `inspect` sees every
    /// message.
    pub(crate) async fn with_client<T>(
        &self,
        inspect: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
        work: impl AsyncFnOnce(&mut OpenConnection) -> Result<T, CommandError>,
        show: impl FnOnce(T) -> Result<Exit, CommandError>,
    ) -> Result<Exit, CommandError> {
        let deadline = self.deadline();
        let mut connection = self.before(deadline, self.open(None, inspect, None)).await??;
        let begun = async {
            self.prepare(&mut connection).await?;
            work(&mut connection).await
        };
        let outcome = self.before(deadline, begun).await;
        let shown = outcome.and_then(|outcome| show(outcome?));
        let shown = shown.map_err(|failure| self.tls.advise(failure));
        // The outcome is printed first: closing the connection may take time.
        let exit = shown.unwrap_or_else(CommandError::report);
        self.close(connection).await;
        Ok(exit)
    }

    /// Connects and begins the session. The caller closes the connection.
    pub(crate) async fn connect(
        &self,
        reconnect: Option<Reconnect>,
        listener: Option<Listener>,
    ) -> Result<OpenConnection, CommandError> {
        if reconnect.is_some() {
            self.check_reconnect()?;
        }
        let connected = async {
            let mut connection = self.open(reconnect, |_, _| {}, listener).await?;
            match self.prepare(&mut connection).await {
                Ok(()) => Ok(connection),
                Err(failure) => {
                    self.close(connection).await;
                    Err(failure)
                }
            }
        };
        let connected = self.in_time(connected).await.and_then(|connected| connected);
        connected.map_err(|failure| self.tls.advise(failure))
    }

    /// Ends the session and closes the connection.
    pub(crate) async fn close(&self, connection: OpenConnection) {
        let client = connection.client;
        self.handshake.end(&client, &self.endpoint, self.dialect).await;
        let _ = timeout(CLOSE_TIMEOUT, client.close()).await;
    }

    async fn prepare(&self, connection: &mut OpenConnection) -> Result<(), CommandError> {
        self.handshake.prepare(connection, &self.endpoint).await
    }

    /// Fails if a second connection would be in another state than the first one.
    fn check_reconnect(&self) -> Result<(), CommandError> {
        match self.handshake.not_repeated(&self.endpoint, self.dialect) {
            None => Ok(()),
            Some(what) => Err(CommandError::usage(format!("--reconnect does not repeat {what}"))
                .hint("omit --reconnect, and start the command again when it ends")),
        }
    }

    /// Awaits a future for at most `--timeout`.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, CommandError> {
        self.before(self.deadline(), work).await
    }

    /// Returns whether connecting starts a child process.
    pub(crate) fn starts_a_process(&self) -> bool {
        matches!(self.endpoint, Endpoint::Exec { .. })
    }

    /// Returns the time limit of `--timeout`.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.timeout.0
    }

    /// Returns how a long-running command connects again; `None` if a second connection would be in another state than
    /// the first one.
    pub(crate) fn reconnects(&self) -> Option<Reconnect> {
        let not_repeated = self.handshake.not_repeated(&self.endpoint, self.dialect);
        not_repeated.is_none().then(Reconnect::new)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns whether each message is printed.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn dialect(&self) -> Option<DialectName> {
        self.dialect
    }

    /// Returns the flags for a query of the completion: without output, and without the user's `--open` and `--init`,
    /// which may change the state of the server.
    pub(crate) fn for_completion(self) -> Self {
        Self { verbose: false, handshake: self.handshake.without_open_and_init(), ..self }
    }

    /// Returns the deadline of work that begins now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timeout.0.and_then(|limit| Instant::now().checked_add(limit))
    }

    /// Returns the dialect, with the version of the calls.
    fn conventions(&self) -> Option<Dialect> {
        let dialect = self.dialect.map(DialectName::to_dialect);
        let Some(version) = self.jsonrpc else { return dialect };
        Some(dialect.unwrap_or_default().version(version.to_version()))
    }

    /// Connects. `inspect` observes every message, `observe` only calls and notifications from the server.
    async fn open(
        &self,
        reconnect: Option<Reconnect>,
        inspect: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
        listener: Option<Listener>,
    ) -> Result<OpenConnection, CommandError> {
        let endpoint = &self.endpoint;
        let web = matches!(endpoint, Endpoint::Http { .. } | Endpoint::Ws { .. });
        if (!self.headers.is_empty() || self.jwt_secret.is_some()) && !web {
            return Err(CommandError::usage(format!("{endpoint} does not support headers"))
                .hint("-H, --user and --jwt-secret are for http:// and ws://"));
        }
        let mut answers = self.answers.read(self.dialect, self.handshake.root())?;
        let (observe, by_hand) = listener.map(|it| (it.observe, it.by_hand)).unzip();
        answers.by_hand = by_hand.flatten();
        let inbox = Inbox::default();
        let mut builder = self.builder(inspect)?;
        // Without a handler, an unreadable message can only be a response, so it fails the call.
        if observe.is_some() || self.handshake.has_lines() || !answers.is_empty() {
            let (answers, inbox) = (answers.clone(), inbox.clone());
            builder = builder.handler(AnsweringHandler { answers, inbox, observe });
        }
        if let Some(reconnect) = reconnect {
            builder = builder.reconnect(reconnect);
        }
        let client = builder.connect(endpoint).await;
        let client = client.map_err(|error| self.connect_failed(&error))?;
        Ok(OpenConnection::new(client, answers, self.dialect, inbox))
    }

    fn builder(
        &self,
        inspect: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
    ) -> Result<ClientBuilder, CommandError> {
        let tls = self.tls.client([&self.endpoint])?;
        let verbose = self.verbose;
        let mut builder = Client::builder().limits(self.limits.limits()).tls(tls).tap(
            move |message: &TappedMessage<'_>| {
                if verbose {
                    print_message(message.direction, message.bytes);
                }
                inspect(message.direction, message.bytes);
            },
        );
        if let Some(dialect) = self.conventions() {
            builder = builder.dialect(dialect);
        }
        if self.http2 {
            builder = builder.http2();
        }
        if let Some(file) = &self.jwt_secret {
            self.headers.check_credentials("--jwt-secret")?;
            builder = builder.jwt(secret::jwt(file)?);
        }
        for (name, value) in self.headers.read()? {
            builder = builder.header(name, value);
        }
        Ok(builder)
    }

    /// Awaits a future until the deadline, with a progress line on a terminal.
    async fn before<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, CommandError> {
        let work = async move {
            match deadline {
                None => Ok(work.await),
                Some(deadline) => timeout_at(deadline, work).await.map_err(|_| self.timed_out()),
            }
        };
        if self.verbose {
            work.await
        } else {
            waiting_line::with_waiting_line(&self.endpoint.to_string(), work).await
        }
    }

    fn timed_out(&self) -> CommandError {
        let limit = self.timeout.0.map(Span).map(|span| span.to_string()).unwrap_or_default();
        let late = CommandError::new(
            Exit::Timeout,
            format!("no reply from {} within {limit}", self.endpoint),
        );
        if self.dialect != Some(DialectName::Lsp)
            && let Endpoint::Exec { framing: None, .. }
            | Endpoint::Tcp { framing: None, .. }
            | Endpoint::Unix { framing: None, .. } = self.endpoint
        {
            return late.hint("--timeout 2m waits longer; language servers need --dialect lsp");
        }
        late.hint("--timeout 2m waits longer, --timeout 0 waits forever")
    }

    fn connect_failed(&self, error: &ConnectError) -> CommandError {
        let ConnectError::Failed { endpoint, source } = error else {
            return CommandError::caused(Exit::Usage, error);
        };
        let exit = match source.kind() {
            ErrorKind::TimedOut => Exit::Timeout,
            ErrorKind::Unsupported => Exit::Usage,
            _ => Exit::Transport,
        };
        let failure = CommandError::caused(exit, error);
        match (source.kind(), &self.endpoint) {
            (ErrorKind::NotFound, Endpoint::Exec { .. }) => {
                failure.hint("check that the command is installed and in PATH")
            }
            (ErrorKind::ConnectionRefused | ErrorKind::NotFound, _) => failure.hint(format!(
                "is the server running there? `antiphon serve {endpoint}` starts a demo server"
            )),
            _ => self.tls.advise(failure),
        }
    }
}

/// Prints a message on stderr.
fn print_message(direction: Direction, message: &[u8]) {
    let mark = match direction {
        Direction::Sent => "-->",
        Direction::Received => "<--",
    };
    let text = match String::from_utf8_lossy(message).trim_end() {
        "" => "(empty)".to_owned(),
        text => output::visible(text),
    };
    output::message(&format!("{} {text}", output::dim(mark)));
}
