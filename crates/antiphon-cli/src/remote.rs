//! The other side: how it is reached, how long it is waited for, and how it is left.

use std::io::ErrorKind;
use std::time::Duration;

use antiphon::{CallError, Client, ConnectError, Direction, Endpoint, Reconnect, TappedMessage};
use clap::Args;
use http::{HeaderName, HeaderValue};
use tokio::time::{Instant, timeout, timeout_at};

use crate::exit::{Exit, Failure};
use crate::limits::ConnectionLimits;
use crate::quantity::{MaybeSpan, Span};
use crate::tls::ClientTls;
use crate::{endpoint, output, waiting};

/// How long to wait where nothing is said.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// How long leaving may take: a child process is asked, then told, then killed, within less.
pub(crate) const LEAVE: Duration = Duration::from_secs(8);

/// Whom to talk to, and how.
#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Where the other side is, such as http://127.0.0.1:8650, unix:/run/app.sock, exec:my-server
    #[arg(value_parser = endpoint::callable)]
    endpoint: Endpoint,
    /// A header to send, as in 'Authorization: Bearer ...'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Call by HTTP/2, which the server must speak; https:// picks it by itself
    #[arg(long)]
    http2: bool,
    #[command(flatten)]
    tls: ClientTls,
    /// How long to wait in all; 0 or none for ever
    #[arg(long, value_name = "TIME", default_value_t = TIMEOUT.into())]
    timeout: MaybeSpan,
    /// Show every message on stderr: --> what goes, <-- what comes
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    limits: ConnectionLimits,
}

impl Remote {
    /// Connects, does the work, shows what came of it, and leaves. Every message passes `see`.
    pub(crate) async fn talk<T>(
        &self,
        see: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
        work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
        show: impl FnOnce(T) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let deadline = self.deadline();
        let client = self.before(deadline, self.connect(None, see)?).await??;
        let answer = self.before(deadline, work(&client)).await;
        let shown = answer.and_then(|answer| show(answer?));
        let shown = shown.map_err(|failure| self.tls.advise(failure));
        // Whoever waits for the outcome need not wait for the farewell.
        let exit = shown.unwrap_or_else(Failure::report);
        let _ = timeout(LEAVE, client.close()).await;
        Ok(exit)
    }

    /// Connects, for as long as it takes to leave again.
    pub(crate) async fn reach(&self, reconnect: Option<Reconnect>) -> Result<Client, Failure> {
        let reached = async { self.in_time(self.connect(reconnect, |_, _| {})?).await? };
        reached.await.map_err(|failure| self.tls.advise(failure))
    }

    /// Waits for something as long as is to be waited.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        self.before(self.deadline(), work).await
    }

    /// Whether to reach it is to start it.
    pub(crate) fn starts_a_process(&self) -> bool {
        matches!(self.endpoint, Endpoint::Exec { .. })
    }

    /// The same, with nothing shown on stderr.
    pub(crate) fn silent(self) -> Self {
        Self { verbose: false, ..self }
    }

    /// When the time that begins now will be over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timeout.0.and_then(|limit| Instant::now().checked_add(limit))
    }

    fn connect(
        &self,
        reconnect: Option<Reconnect>,
        see: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
    ) -> Result<impl Future<Output = Result<Client, Failure>>, Failure> {
        let web = matches!(self.endpoint, Endpoint::Http { .. } | Endpoint::Ws { .. });
        if !self.headers.is_empty() && !web {
            return Err(Failure::usage(format!("{} has no headers", self.endpoint))
                .hint("-H is for http:// and ws://"));
        }
        let tls = self.tls.client([&self.endpoint])?;
        let verbose = self.verbose;
        let mut builder = Client::builder().limits(self.limits.limits()).tls(tls).tap(
            move |message: &TappedMessage<'_>| {
                if verbose {
                    tell(message.direction, message.bytes);
                }
                see(message.direction, message.bytes);
            },
        );
        if let Some(reconnect) = reconnect {
            builder = builder.reconnect(reconnect);
        }
        if self.http2 {
            builder = builder.http2();
        }
        for (name, value) in self.headers.iter().cloned() {
            builder = builder.header(name, value);
        }
        Ok(Box::pin(async move {
            let connected = builder.connect_to(&self.endpoint).await;
            connected.map_err(|error| self.unreachable(&error))
        }))
    }

    /// Waits for something until the time is over.
    async fn before<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let work = async move {
            match deadline {
                None => Ok(work.await),
                Some(deadline) => timeout_at(deadline, work).await.map_err(|_| self.too_late()),
            }
        };
        if self.verbose {
            work.await
        } else {
            waiting::shown(&self.endpoint.to_string(), work).await
        }
    }

    fn too_late(&self) -> Failure {
        let limit = self.timeout.0.map(Span).map(|span| span.to_string()).unwrap_or_default();
        let late =
            Failure::new(Exit::Timeout, format!("no answer from {} within {limit}", self.endpoint));
        if let Endpoint::Exec { framing: None, .. }
        | Endpoint::Tcp { framing: None, .. }
        | Endpoint::Unix { framing: None, .. } = self.endpoint
        {
            return late.hint(
                "--timeout 2m waits longer; a language server needs +header, as in exec+header:clangd",
            );
        }
        late.hint("--timeout 2m waits longer, --timeout 0 for ever")
    }

    fn unreachable(&self, error: &ConnectError) -> Failure {
        let ConnectError::Failed { endpoint, source } = error else {
            return Failure::usage(error.to_string());
        };
        let exit = match source.kind() {
            ErrorKind::TimedOut => Exit::Timeout,
            ErrorKind::Unsupported => Exit::Usage,
            _ => Exit::Transport,
        };
        let failure = Failure::new(exit, format!("cannot connect to {endpoint}: {source}"));
        match (source.kind(), &self.endpoint) {
            (ErrorKind::NotFound, Endpoint::Exec { .. }) => {
                failure.hint("check that the command is installed and on the PATH")
            }
            (ErrorKind::ConnectionRefused | ErrorKind::NotFound, _) => failure.hint(format!(
                "is the server running there? `antiphon serve {endpoint}` starts one to try"
            )),
            _ => self.tls.advise(failure),
        }
    }
}

/// Shows one message on stderr.
fn tell(direction: Direction, message: &[u8]) {
    let mark = match direction {
        Direction::Sent => "-->",
        Direction::Received => "<--",
    };
    let text = match String::from_utf8_lossy(message).trim_end() {
        "" => "(nothing)".to_owned(),
        text => output::visible(text),
    };
    output::note(&format!("{} {text}", output::dim(mark)));
}

pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) =
        text.split_once(':').ok_or("a header is `Name: value`; the colon is missing")?;
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("`{name}` is no name of a header"))?;
    let value = value.trim().parse().map_err(|_| "its value holds a control character")?;
    if [http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING].contains(&name) {
        return Err(format!("`{name}` says where the message ends and is set by itself"));
    }
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let (name, value) = header("X-Key:  a:b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-key", "a:b"));
        for bad in ["X-Key", ": x", "a b: c", "a: b\nc", "Content-Length: 3"] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }
}
