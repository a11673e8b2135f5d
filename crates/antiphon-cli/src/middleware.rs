//! What stands around the calls that `antiphon serve` serves: its flags, and the layers they put up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use antiphon::layer::{Auth, CatchPanic, Concurrency, Filter, Metrics, Quota, RateLimit, Trace};
use antiphon::{Handler, Router, Server};
use clap::Args;

use crate::exit::Failure;
use crate::quantity::Count;

/// The method by which a connection without headers logs in.
const LOGIN: &str = "rpc.login";

/// The flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Middleware")]
pub(crate) struct Middleware {
    /// Serve only who shows this token, or one of the file's, a line each; may be repeated
    #[arg(long, env = "ANTIPHON_AUTH_BEARER", hide_env_values = true, value_name = "TOKEN|@FILE")]
    auth_bearer: Vec<Secret>,
    /// Serve only who shows this name and password, or a line of the file; may be repeated
    #[arg(long, env = "ANTIPHON_AUTH_BASIC", hide_env_values = true)]
    #[arg(value_name = "USER:PASSWORD|@FILE")]
    auth_basic: Vec<Secret>,
    /// Let each caller call so often, as 100/s, 20/m or search=5/s for one method; may be repeated
    #[arg(long, env = "ANTIPHON_RATE_LIMIT", value_name = "[METHOD=]RATE", value_delimiter = ',')]
    rate_limit: Vec<Rate>,
    /// Let so many calls of all connections run at once; as many more wait
    #[arg(long, env = "ANTIPHON_MAX_CONCURRENCY", value_name = "COUNT")]
    max_concurrency: Option<Count>,
    /// Serve only these methods, as echo or db.*; may be repeated
    #[arg(long, value_name = "PATTERN")]
    allow_method: Vec<String>,
    /// Serve these methods to nobody; may be repeated
    #[arg(long, value_name = "PATTERN")]
    deny_method: Vec<String>,
    /// Count calls, and serve the counts to Prometheus at /metrics of HTTP endpoints
    #[arg(long)]
    metrics: bool,
    /// Log each call when it ends, with its place in its trace, and pass that on to what it calls
    #[arg(long)]
    pub(crate) trace: bool,
}

/// What the help says of them.
pub(crate) const HELP: &str = "\
Credentials:
  Over HTTP and WebSocket they are in the Authorization header. Any other connection logs in first, by
  calling rpc.login [token] or rpc.login {\"user\", \"password\"}. Without them a call is answered -32013,
  over HTTP with status 401. Who may list processes sees the flags of each: write secrets to a file or
  to the environment.

Traces:
  --trace reads and writes W3C Trace Context: the headers traceparent and tracestate, or members of a
  message of the same names.

Beside the service, HTTP endpoints answer GET /healthz with ok.";

impl Middleware {
    /// The service with its layers, the first of which is the innermost, and the server with its pages.
    pub(crate) fn wrap(
        self,
        router: Router,
        server: Server,
    ) -> Result<(Arc<dyn Handler>, Server), Failure> {
        let metrics = self.metrics.then(|| Metrics::new(router.names()));
        let auth = self.auth()?;
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
        if let Some(auth) = auth {
            handler = Arc::new(handler.layer(auth));
            if let Some(limit) = self.login_rate() {
                handler = Arc::new(handler.layer(limit));
            }
        }
        if let Some(filter) = self.filter() {
            handler = Arc::new(handler.layer(filter));
        }
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

    fn auth(&self) -> Result<Option<Auth>, Failure> {
        if self.auth_bearer.is_empty() && self.auth_basic.is_empty() {
            return Ok(None);
        }
        let mut auth = Auth::new().login(LOGIN);
        for (number, token) in (1..).zip(lines(&self.auth_bearer)?) {
            auth = auth.bearer(token, format!("bearer-{number}"));
        }
        for line in lines(&self.auth_basic)? {
            let (user, password) = line.split_once(':').ok_or_else(|| {
                Failure::usage("--auth-basic needs a name and a password, as in ada:secret")
            })?;
            auth = auth.basic(user, password);
        }
        Ok(Some(auth))
    }

    /// The rate of this method, or the one for all.
    fn quota(&self, method: Option<&str>) -> Option<Quota> {
        let mut rates = self.rate_limit.iter();
        rates.find(|rate| rate.method.as_deref() == method).map(|rate| rate.quota)
    }

    /// Without a rate for all, only the methods that are named have one.
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

    /// Stands outside of the credentials: who guesses at them has no name yet, and is charged by
    /// address.
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

/// Every secret, those of files line by line.
fn lines(secrets: &[Secret]) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for Secret(secret) in secrets {
        let Some(path) = secret.strip_prefix('@') else {
            all.push(secret.clone());
            continue;
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("the credentials cannot be read from {path}: {error}"))
        })?;
        let found = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let before = all.len();
        all.extend(found.map(str::to_owned));
        if all.len() == before {
            return Err(Failure::usage(format!("there are no credentials in {path}")));
        }
    }
    Ok(all)
}

/// A text that is not shown.
#[derive(Clone)]
struct Secret(String);

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it is empty, which would let everybody in".to_owned()),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// So many calls in so much time, of all methods or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rate {
    method: Option<String>,
    quota: Quota,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = || format!("`{text}` is no rate; write 100/s, 20/m, 5/h or search=5/s");
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
    fn rates_are_written_by_the_second_minute_and_hour() {
        let rate = |text: &str| text.parse::<Rate>();
        assert_eq!(rate("100/s").unwrap().quota, Quota::per_second(100));
        assert_eq!(rate("a=b=5/m").unwrap().method.as_deref(), Some("a=b"));
        for text in ["", "100", "0/s", "-1/s", "1.5/s", "5/d", "/s", "99999999999/s"] {
            assert!(rate(text).unwrap_err().contains("100/s"), "{text}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret: Secret = "hush".parse().unwrap();
        assert!(!format!("{secret:?}").contains("hush"));
        assert!("".parse::<Secret>().is_err());
    }
}
