//! The HTTP requests of authorization: documents, keys and tokens.
//!
//! Each request has its own connection: these requests are rare, and a pool would have to be secured against reuse.
//! The size of a response and the time of an exchange are limited. Only GET follows redirects, and each target must
//! pass the same rule as the first URL.

use std::time::Duration;

use antiphon::transport::tls::TlsClient;
use bytes::Bytes;
use http::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::address_policy;
use super::web_url::{UrlRule, WebUrlError, shortened};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The maximum number of redirects of one GET.
const MAX_REDIRECTS: usize = 3;

/// Sends the HTTP requests of authorization. By default, an exchange may take 10 seconds, and a response may have
/// 256 KiB.
///
/// ```
/// use antiphon_mcp::auth::HttpFetch;
/// use std::time::Duration;
///
/// let fetch = HttpFetch::new().timeout(Duration::from_secs(3)).max_bytes(64 * 1024);
/// ```
#[derive(Clone, Debug)]
pub struct HttpFetch {
    tls: TlsClient,
    timeout: Duration,
    max_bytes: usize,
    private_addresses: bool,
    /// The server whose documents name the URLs.
    server: Option<Url>,
}

impl Default for HttpFetch {
    fn default() -> Self {
        Self {
            tls: TlsClient::new(),
            timeout: Duration::from_secs(10),
            max_bytes: 256 * 1024,
            private_addresses: false,
            server: None,
        }
    }
}

/// The reason why a request of authorization failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is refused.
    #[error(transparent)]
    Url(#[from] WebUrlError),
    /// The server cannot be reached, or the exchange broke.
    #[error("cannot reach {url}; check the address and the network")]
    Exchange {
        /// The URL.
        url: String,
        /// The cause.
        source: BoxError,
    },
    /// The server did not answer in time.
    #[error("no response from {url} within {} s; try again later", after.as_secs_f32())]
    Timeout {
        /// The URL.
        url: String,
        /// The limit.
        after: Duration,
    },
    /// The response is too large.
    #[error(
        "the response of {url} has more than {limit} bytes; raise the limit if you trust the server"
    )]
    TooLarge {
        /// The URL.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// The server answered with an unexpected status.
    #[error("{url} answered with status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// The server redirects too often, or without a target.
    #[error("{url} redirects too often or without a target; use the final URL")]
    Redirect {
        /// The URL.
        url: String,
    },
    /// The response is not the expected JSON document.
    #[error("the response of {url} is not the expected JSON document: {reason}")]
    Json {
        /// The URL.
        url: String,
        /// The position of the fault. It never repeats values of the document.
        reason: String,
    },
}

impl FetchError {
    /// Whether the server answered that it does not have the document.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Status { status, .. } if status.is_client_error())
    }
}

impl HttpFetch {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the TLS settings for `https` URLs.
    #[must_use]
    pub fn tls(mut self, tls: TlsClient) -> Self {
        self.tls = tls;
        self
    }

    /// Limits the time of one exchange, with its connection.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Limits the size of a response in bytes.
    #[must_use]
    pub fn max_bytes(mut self, limit: usize) -> Self {
        self.max_bytes = limit;
        self
    }

    /// Sets whether an MCP server with a public address may lead the client to private addresses, such as those of an
    /// authorization server in the network of a company. The default is false: any server could otherwise make the
    /// client reach into its network. An MCP server in a private network always may.
    #[must_use]
    pub fn private_addresses(mut self, allow: bool) -> Self {
        self.private_addresses = allow;
        self
    }

    /// Takes the URLs from documents of this server, or from the application.
    pub(crate) fn named_by(&self, server: Option<&Url>) -> Self {
        Self { server: server.cloned(), ..self.clone() }
    }

    /// Reads a JSON document.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        url: &Url,
        rule: UrlRule,
    ) -> Result<T, FetchError> {
        let (url, response) = self.get(url.clone(), rule).await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status { url: named(&url), status: response.status() });
        }
        parse_json(&url, response.body())
    }

    async fn get(&self, mut url: Url, rule: UrlRule) -> Result<(Url, Response<Bytes>), FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&url, rule, Request::new(Bytes::new())).await?;
            if !response.status().is_redirection() {
                return Ok((url, response));
            }
            let target = location(&url, &response).ok_or_else(|| no_redirect(&url))?;
            // A document that was secured stays secured.
            let rule = if url.scheme() == "https" { UrlRule::Remote } else { rule };
            rule.check(&target)?;
            url = target;
        }
        Err(no_redirect(&url))
    }

    /// Sends one request. Its URI is ignored: the URL is its target. Redirects are returned as they are.
    pub(crate) async fn send(
        &self,
        url: &Url,
        rule: UrlRule,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, FetchError> {
        rule.check(url)?;
        let exchange = Box::pin(self.exchange(url, request));
        match timeout(self.timeout, exchange).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) if source.is::<LengthLimitError>() => {
                Err(FetchError::TooLarge { url: named(url), limit: self.max_bytes })
            }
            Ok(Err(source)) if source.is::<WebUrlError>() => {
                let refused = source.downcast::<WebUrlError>();
                Err(refused.map_or_else(|_| no_redirect(url), |refused| (*refused).into()))
            }
            Ok(Err(source)) => Err(FetchError::Exchange { url: named(url), source }),
            Err(_) => Err(FetchError::Timeout { url: named(url), after: self.timeout }),
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, BoxError> {
        address(url, &mut request)?;
        let server = self.server.as_ref().filter(|_| !self.private_addresses);
        let addresses = address_policy::addresses(url, server).await?;
        let stream = TcpStream::connect(&*addresses).await?;
        if url.scheme() == "https" {
            let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
            let stream = self.tls.connect(stream, name).await?;
            return self.exchange_over(stream, request).await;
        }
        self.exchange_over(stream, request).await
    }

    async fn exchange_over<S>(
        &self,
        stream: S,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, BoxError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async {
            let response = sender.send_request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, self.max_bytes).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        // The connection runs only beside the exchange, so that it ends with it.
        let driven = async {
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! {
            exchanged = exchange => exchanged,
            never = driven => never,
        }
    }
}

/// Sets the target, the host and the default headers of a request.
fn address(url: &Url, request: &mut Request<Bytes>) -> Result<(), BoxError> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    *request.uri_mut() = target.parse()?;
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(host)?);
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
    let agent = concat!("antiphon-mcp/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    Ok(())
}

/// Returns a POST of a form.
pub(crate) fn form_request(form: &[(&str, &str)]) -> Request<Bytes> {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    post(Bytes::from(body), "application/x-www-form-urlencoded")
}

/// Returns a POST with a body.
pub(crate) fn post(body: Bytes, content_type: &'static str) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    let content_type = HeaderValue::from_static(content_type);
    request.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    request
}

/// Parses a JSON document that came from a URL.
pub(crate) fn parse_json<T: DeserializeOwned>(url: &Url, body: &[u8]) -> Result<T, FetchError> {
    serde_json::from_slice(body)
        .map_err(|error| FetchError::Json { url: named(url), reason: fault(&error) })
}

/// Describes a JSON error without the values of the document, which may be secrets.
fn fault(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "a member is missing or has the wrong type",
        _ => "malformed JSON",
    };
    format!("{what} at line {} column {}", error.line(), error.column())
}

/// Returns the target of a redirect.
pub(crate) fn location(url: &Url, response: &Response<Bytes>) -> Option<Url> {
    url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

fn no_redirect(url: &Url) -> FetchError {
    FetchError::Redirect { url: named(url) }
}

/// Returns a URL for messages. The query may contain secrets, so it is left out.
pub(crate) fn named(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    shortened(url.as_str())
}
