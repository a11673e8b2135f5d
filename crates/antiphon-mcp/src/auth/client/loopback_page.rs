//! The page that a user sees after the redirect. One request per connection, of limited size and time.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::form_urlencoded;

/// The maximum size of a request head in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// The maximum time of one connection.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The redirect that is expected.
pub(super) struct ExpectedRedirect {
    pub(super) path: &'static str,
    /// The state of the authorization request.
    pub(super) state: Option<String>,
}

/// Serves one connection. Returns the query if it is the expected redirect.
pub(super) async fn serve(stream: TcpStream, expected: &ExpectedRedirect) -> Option<String> {
    timeout(MAX_TIME, exchange(stream, expected)).await.ok()?.ok()?
}

async fn exchange(
    mut stream: TcpStream,
    expected: &ExpectedRedirect,
) -> io::Result<Option<String>> {
    let head = read_head(&mut stream).await?;
    let query = expected.query(&head);
    let (status, text) = match &query {
        Some(query) if has(query, "error", None) => (
            "200 OK",
            "The authorization failed. You can close this page and return to the program.",
        ),
        Some(_) => ("200 OK", "Done. You can close this page and return to the program."),
        None => ("404 Not Found", "There is nothing here."),
    };
    // The browser may be gone already.
    let _ = stream.write_all(page(status, text).as_bytes()).await;
    let _ = stream.shutdown().await;
    Ok(query)
}

/// Reads to the end of the head, or to the limit.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while head.len() < MAX_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await? {
            0 => break,
            read => head.extend(piece.iter().take(read)),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

impl ExpectedRedirect {
    fn query(&self, head: &str) -> Option<String> {
        let (line, _) = head.split_once("\r\n")?;
        let target = line.strip_prefix("GET ")?.split(' ').next()?;
        let (path, query) = target.split_once('?')?;
        let is_expected = path == self.path && has(query, "state", self.state.as_deref());
        is_expected.then(|| query.to_owned())
    }
}

/// Whether a query has a parameter, with this value if one is given.
fn has(query: &str, name: &str, value: Option<&str>) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .any(|(key, found)| key == name && value.is_none_or(|value| found == value))
}

fn page(status: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Authorization</title>\
         <body><p>{text}</p></body></html>"
    );
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_redirect_with_the_state_is_taken() {
        let expected = ExpectedRedirect { path: "/callback", state: Some("s 1".to_owned()) };
        let query = |line: &str| expected.query(&format!("{line}\r\nhost: x\r\n\r\n"));
        assert_eq!(
            query("GET /callback?code=c&state=s+1 HTTP/1.1").as_deref(),
            Some("code=c&state=s+1")
        );
        for line in [
            "GET /callback?code=c HTTP/1.1",
            "GET /callback?code=c&state=s2 HTTP/1.1",
            "GET /favicon.ico?state=s+1 HTTP/1.1",
            "POST /callback?code=c&state=s+1 HTTP/1.1",
            "",
        ] {
            assert_eq!(query(line), None, "{line}");
        }
    }
}
