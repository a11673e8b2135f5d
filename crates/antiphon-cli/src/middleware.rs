//! The middleware of `antiphon serve`: its flags and the layers they add.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use antiphon::layer::{Auth, CatchPanic, Concurrency, Filter, Metrics, Quota, RateLimit, Trace};
use antiphon::transport::http::{BitcoinPolicy, EnginePolicy};
use antiphon::{Endpoint, Handler, Router, Server};
use clap::Args;

use crate::auth_cookie::AuthCookie;
use crate::dialect::DialectName;
use crate::exit::CommandError;
use crate::quantity::Count;
use crate::secret::{self, Secret};

/// The method that authenticates a connection without headers.
const LOGIN: &str = "rpc.login";

/// The middleware flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Middleware")]
pub(crate) struct MiddlewareArgs {
    /// Require this bearer token, or one from a file with one token per line [repeatable]
    #[arg(long, env = "ANTIPHON_AUTH_BEARER", hide_env_values = true, value_name = "TOKEN|@FILE")]
    auth_bearer: Vec<Secret>,
    /// Require this user and password, or a line of a file [repeatable]
    #[arg(long, env = "ANTIPHON_AUTH_BASIC", hide_env_values = true)]
    #[arg(value_name = "USER:PASSWORD|@FILE")]
    auth_basic: Vec<Secret>,
    /// Write a cookie file with a new password, as Bitcoin nodes do, and require this password; the file
    /// has mode 0600 and is removed at exit
    #[arg(long, value_name = "FILE")]
    auth_cookie: Option<PathBuf>,
    /// Require the tokens of the Engine API of Ethereum nodes over HTTP and WebSocket, signed with the
    /// secret in this file: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["auth_bearer", "auth_basic", "auth_cookie"])]
    jwt_secret: Option<PathBuf>,
    /// Limit the call rate of each client: 100/s, 20/m, 5/h, or search=5/s for one method
    /// [repeatable]
    #[arg(long, env = "ANTIPHON_RATE_LIMIT", value_name = "[METHOD=]RATE", value_delimiter = ',')]
    rate_limit: Vec<Rate>,
    /// Limit the calls that run at once over all connections; the same number can wait in a queue
    #[arg(long, env = "ANTIPHON_MAX_CONCURRENCY", value_name = "COUNT")]
    max_concurrency: Option<Count>,
    /// Serve only methods that match, such as echo or 'db.*' [repeatable]
    #[arg(long, value_name = "PATTERN")]
    allow_method: Vec<String>,
    /// Hide methods that match, such as 'debug.*' [repeatable]
    #[arg(long, value_name = "PATTERN")]
    deny_method: Vec<String>,
    /// Serve Prometheus metrics at /metrics on HTTP endpoints
    #[arg(long)]
    metrics: bool,
    /// Log each call with its trace id, and propagate W3C Trace Context
    #[arg(long)]
    pub(crate) trace: bool,
}

/// The section of `--help` about these flags.
pub(crate) const HELP: &str = "\
Authentication:
  HTTP and WebSocket clients send an Authorization header. Clients on other
  transports first call rpc.login [token] or rpc.login {\"user\", \"password\"}.
  A call without valid credentials gets error -32013, over HTTP with status 401.
  Other users of this machine can see command lines: keep secrets in a file
  (@FILE) or in the environment.
  With --jwt-secret, each HTTP request and each upgrade to a WebSocket needs a
  token of the Engine API, issued at most 60 seconds ago. A Unix socket needs
  none: its file permissions protect it.

Tracing:
  --trace reads and writes the headers traceparent and tracestate, or the
  members of a message with these names.

Health check:
  GET /healthz on an HTTP endpoint returns \"ok\".";

impl MiddlewareArgs {
    /// Fails if `--jwt-secret` cannot protect an endpoint, or if the dialect has no such tokens.
    pub(crate) fn check(
        &self,
        endpoints: &[Endpoint],
        dialect: Option<DialectName>,
    ) -> Result<(), CommandError> {
        if self.jwt_secret.is_none() {
            return Ok(());
        }
        if dialect == Some(DialectName::Bitcoin) {
            return Err(CommandError::usage("Bitcoin nodes have no JWT")
                .hint("use --auth-basic or --auth-cookie, or --dialect ethereum"));
        }
        let is_open = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tcp { .. });
        match endpoints.iter().find(is_open) {
            Some(open) => {
                let what = format!("--jwt-secret cannot protect {open}: it has no headers");
                Err(CommandError::usage(what).hint("use http://, ws:// or unix:"))
            }
            None => Ok(()),
        }
    }

    /// Returns the flags with which `antiphon call` authenticates to this server. They contain no secret.
    pub(crate) fn client_flags(&self) -> String {
        let quoted = |path: &PathBuf| shell_words::quote(&path.to_string_lossy()).into_owned();
        let cookie = self.auth_cookie.iter().map(|path| format!(" --user @{}", quoted(path)));
        let jwt = self.jwt_secret.iter().map(|path| format!(" --jwt-secret {}", quoted(path)));
        let basic = self.auth_basic.iter().map(|_| " --user USER:PASSWORD".to_owned());
        let bearer =
            self.auth_bearer.iter().map(|_| " -H 'Authorization: Bearer TOKEN'".to_owned());
        cookie.chain(jwt).chain(basic).chain(bearer).next().unwrap_or_default()
    }

    /// Writes the cookie file, if one is wanted. It is removed when the cookie is dropped.
    pub(crate) fn write_cookie(&self) -> Result<Option<AuthCookie>, CommandError> {
        self.auth_cookie.as_deref().map(AuthCookie::create).transpose()
    }

    /// Wraps the service in its layers, the innermost first, and adds HTTP pages to the server.
    pub(crate) fn wrap(
        self,
        router: Router,
        server: Server,
        dialect: Option<DialectName>,
        cookie: Option<&AuthCookie>,
    ) -> Result<(Arc<dyn Handler>, Server), CommandError> {
        let metrics = self.metrics.then(|| Metrics::new(router.names()));
        let auth = self.auth(cookie)?;
        let mut handler: Arc<dyn Handler> = Arc::new(router);
        if metrics.is_some() {
            handler = Arc::new(handler.layer(CatchPanic::new()));
        }
        if let Some(Count(limit)) = self.max_concurrency {
            handler = Arc::new(handler.layer(Concurrency::new(limit).queue(limit)));
        }
        if let Some(limit) = self.rate() {
            handler = Arc::new(handler.layer(limit));
        }
        if let Some(auth) = &auth {
            handler = Arc::new(handler.layer(auth.clone()));
            if let Some(limit) = self.login_rate() {
                handler = Arc::new(handler.layer(limit));
            }
        }
        if let Some(filter) = self.filter() {
            handler = Arc::new(handler.layer(filter));
        }
        let server = match (&self.jwt_secret, dialect, auth) {
            (Some(file), ..) => server.http_policy(EnginePolicy::new(secret::jwt(file)?)),
            // Bitcoin nodes check the credentials before they read the body.
            (None, Some(DialectName::Bitcoin), Some(auth)) => {
                server.http_policy(BitcoinPolicy::new().auth(auth))
            }
            _ => server,
        };
        let mut server = server.page("/healthz", "text/plain", || "ok\n".to_owned());
        if let Some(metrics) = metrics {
            handler = Arc::new(handler.layer(metrics.clone()));
            server = server.page("/metrics", Metrics::CONTENT_TYPE, move || metrics.render());
        }
        if self.trace {
            handler = Arc::new(handler.layer(Trace::new()));
        }
        Ok((handler, server))
    }

    fn auth(&self, cookie: Option<&AuthCookie>) -> Result<Option<Auth>, CommandError> {
        if self.auth_bearer.is_empty() && self.auth_basic.is_empty() && cookie.is_none() {
            return Ok(None);
        }
        let mut auth = Auth::new().login(LOGIN);
        if let Some(cookie) = cookie {
            auth = auth.basic(AuthCookie::USER, cookie.password());
        }
        for (number, token) in (1..).zip(secret::lines(&self.auth_bearer)?) {
            auth = auth.bearer(token, format!("bearer-{number}"));
        }
        for line in secret::lines(&self.auth_basic)? {
            let (user, password) = line.split_once(':').ok_or_else(|| {
                CommandError::usage(
                    "--auth-basic requires a user and a password, such as ada:secret",
                )
            })?;
            auth = auth.basic(user, password);
        }
        Ok(Some(auth))
    }

    /// Returns the rate of this method, or with `None` the rate for all methods.
    fn quota(&self, method: Option<&str>) -> Option<Quota> {
        let mut rates = self.rate_limit.iter();
        rates.find(|rate| rate.method.as_deref() == method).map(|rate| rate.quota)
    }

    /// Returns the rate limits. Without a rate for all methods, only the named methods are limited.
    fn rate(&self) -> Option<RateLimit> {
        let mut methods = self.rate_limit.iter().filter(|rate| rate.method.is_some()).peekable();
        let usual = self.quota(None);
        if usual.is_none() && methods.peek().is_none() {
            return None;
        }
        let limit = RateLimit::new(usual.unwrap_or_else(unlimited));
        Some(methods.fold(limit, |limit, rate| match &rate.method {
            Some(method) => limit.method(method, rate.quota),
            None => limit,
        }))
    }

    /// Limits login attempts. This layer is outside authentication, so attempts are counted per address:
    /// a client that guesses has no identity yet.
    fn login_rate(&self) -> Option<RateLimit> {
        let quota = self.quota(Some(LOGIN)).or_else(|| self.quota(None))?;
        Some(RateLimit::new(unlimited()).method(LOGIN, quota))
    }

    fn filter(&self) -> Option<Filter> {
        if self.allow_method.is_empty() && self.deny_method.is_empty() {
            return None;
        }
        let filter = Filter::new().deny(&self.deny_method);
        Some(match self.allow_method.is_empty() {
            true => filter,
            false => filter.allow(&self.allow_method).allow([LOGIN]),
        })
    }
}

fn unlimited() -> Quota {
    Quota::new(u32::MAX, Duration::from_millis(1))
}

/// A number of calls per unit of time, for all methods or for one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rate {
    method: Option<String>,
    quota: Quota,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = || format!("`{text}` is not a rate; use 100/s, 20/m, 5/h or search=5/s");
        let (method, rate) = match text.rsplit_once('=') {
            Some((method, rate)) => (Some(method.to_owned()), rate),
            None => (None, text),
        };
        let (calls, unit) = rate.split_once('/').ok_or_else(remedy)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(remedy()),
        };
        let calls = calls.parse().ok().filter(|calls| *calls > 0).ok_or_else(remedy)?;
        Ok(Self { method, quota: Quota::new(calls, Duration::from_secs(seconds)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_second_minute_or_hour() {
        let rate = |text: &str| text.parse::<Rate>();
        assert_eq!(rate("100/s").unwrap().quota, Quota::per_second(100));
        assert_eq!(rate("a=b=5/m").unwrap().method.as_deref(), Some("a=b"));
        for text in ["", "100", "0/s", "-1/s", "1.5/s", "5/d", "/s", "99999999999/s"] {
            assert!(rate(text).unwrap_err().contains("100/s"), "{text}");
        }
    }
}
