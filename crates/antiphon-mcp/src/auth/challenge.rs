//! The challenge of a server that refused a request (RFC 9110, section 11.6.1; RFC 6750, section 3).

use std::str::Chars;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};

use super::{Scopes, Secret};
use crate::client::Refusal;
use crate::client::credentials::DPOP_NONCE;

/// The challenge of a server that refused a request with status 401 or 403.
///
/// ```
/// use antiphon_mcp::auth::Challenge;
/// use antiphon::http::{HeaderMap, HeaderValue, StatusCode};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("www-authenticate", HeaderValue::from_static(r#"Bearer scope="files:read""#));
/// let challenge = Challenge::of_response(StatusCode::UNAUTHORIZED, &headers);
/// assert_eq!(challenge.scope.unwrap().to_string(), "files:read");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The status of the response: 401 or 403.
    pub status: StatusCode,
    /// The URL of the metadata of the protected resource (RFC 9728).
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scope: Option<Scopes>,
    /// The error code, such as `insufficient_scope`.
    pub error: Option<String>,
    /// The reason for developers.
    pub error_description: Option<String>,
    /// The nonce that the server requires in proofs of possession (RFC 9449).
    pub dpop_nonce: Option<String>,
    /// The token that the refused request carried, if any. With it, a token that another request obtained in the
    /// meantime is used without a further authorization.
    pub rejected: Option<Secret>,
}

/// The limits on what is read from the headers of one response.
const MAX_CHALLENGES: usize = 16;
const MAX_PARAMETERS: usize = 32;

impl Challenge {
    /// Creates a challenge without parameters.
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            resource_metadata: None,
            scope: None,
            error: None,
            error_description: None,
            dpop_nonce: None,
            rejected: None,
        }
    }

    /// Reads the Bearer challenge of a response, or else the DPoP challenge. Parameters that are absent or malformed stay empty.
    pub fn of_response(status: StatusCode, headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut challenge = Self::new(status);
        challenge.read(values.filter_map(|value| value.to_str().ok()));
        let nonce = headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        challenge.dpop_nonce = nonce.map(str::to_owned);
        challenge
    }

    /// Reads the challenge of a request that the MCP client has sent.
    pub(crate) fn of_refusal(refused: &Refusal<'_>) -> Self {
        let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut challenge = Self::new(status);
        challenge.read([refused.challenge].into_iter());
        challenge.dpop_nonce = refused.dpop_nonce.map(str::to_owned);
        challenge.rejected = refused.token.map(Secret::new);
        challenge
    }

    fn read<'a>(&mut self, headers: impl Iterator<Item = &'a str>) {
        let all: Vec<ParsedChallenge> = headers.flat_map(parse).take(MAX_CHALLENGES).collect();
        let of = |name| all.iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case(name));
        let ours = of("bearer").or_else(|| of("dpop"));
        for (name, value) in ours.map(|(_, parameters)| parameters.clone()).unwrap_or_default() {
            match &*name.to_ascii_lowercase() {
                "resource_metadata" => self.resource_metadata = Some(value),
                "scope" => self.scope = Some(Scopes::parse(&value)),
                "error" => self.error = Some(value),
                "error_description" => self.error_description = Some(value),
                _ => {}
            }
        }
    }

    /// Sets the token that the refused request carried.
    #[must_use]
    pub fn rejecting(mut self, token: Secret) -> Self {
        self.rejected = Some(token);
        self
    }

    /// Whether the token is valid, but lacks scopes.
    pub fn is_step_up(&self) -> bool {
        self.status == StatusCode::FORBIDDEN && self.error.as_deref() == Some("insufficient_scope")
    }
}

type ParsedChallenge = (String, Vec<(String, String)>);

/// Parses the challenges of one header. Stops at the first character that does not fit.
fn parse(text: &str) -> Vec<ParsedChallenge> {
    let mut challenges: Vec<ParsedChallenge> = Vec::new();
    let mut rest = HeaderText(text.chars());
    while challenges.len() <= MAX_CHALLENGES {
        rest.skip(|c| c == ',' || c.is_ascii_whitespace());
        let name = rest.token();
        if name.is_empty() {
            break;
        }
        // A name in front of `=` is a parameter of the current challenge. Any other starts a new one.
        match (rest.value(), challenges.last_mut()) {
            (Some(value), Some((_, parameters))) if parameters.len() < MAX_PARAMETERS => {
                parameters.push((name, value));
            }
            (Some(_), _) => {}
            (None, _) => challenges.push((name, Vec::new())),
        }
    }
    challenges
}

/// The part of a header that is not parsed yet.
struct HeaderText<'a>(Chars<'a>);

impl HeaderText<'_> {
    fn peek(&self) -> Option<char> {
        self.0.clone().next()
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.0.next();
        }
    }

    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.peek().filter(|next| is_taken(*next)) {
            taken.push(next);
            self.0.next();
        }
        taken
    }

    fn token(&mut self) -> String {
        self.take_while(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c))
    }

    /// Parses `=` and the value behind it, if there is one. Otherwise nothing is consumed.
    fn value(&mut self) -> Option<String> {
        let mut rest = HeaderText(self.0.clone());
        rest.skip(|c| c.is_ascii_whitespace());
        if rest.0.next() != Some('=') {
            return None;
        }
        rest.skip(|c| c.is_ascii_whitespace());
        let value = match rest.peek() {
            Some('"') => rest.quoted(),
            _ => rest.take_while(|c| c != ',' && !c.is_ascii_whitespace()),
        };
        self.0 = rest.0;
        Some(value)
    }

    fn quoted(&mut self) -> String {
        let mut text = String::new();
        self.0.next();
        while let Some(next) = self.0.next() {
            match next {
                '"' => break,
                '\\' => text.extend(self.0.next()),
                other => text.push(other),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::proptest;

    use super::*;

    fn read(values: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        Challenge::of_response(StatusCode::FORBIDDEN, &headers)
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let expected = Challenge {
            resource_metadata: Some("https://m.example/x,y".to_owned()),
            scope: Some(Scopes::parse("a b")),
            error: Some("insufficient_scope".to_owned()),
            error_description: Some("say \"please\"".to_owned()),
            ..Challenge::new(StatusCode::FORBIDDEN)
        };
        let bearer = r#"bearer  Error=insufficient_scope , scope = "b a",resource_metadata="https://m.example/x,y", error_description="say \"please\"""#;
        assert_eq!(read(&[bearer]), expected);
        assert_eq!(
            read(&[&format!("Basic realm=\"x\", {bearer}, Digest nonce=\"scope\"")]),
            expected
        );
        assert_eq!(read(&["Negotiate YWJj==", bearer]), expected);
        assert!(read(&[bearer]).is_step_up());
    }

    proptest! {
        #[test]
        fn no_header_breaks_the_parser(value in "[ -~]{0,80}", spliced in "[a-z =,\"\\\\]{0,40}") {
            read(&[&value, &format!("Bearer scope=\"a\", {spliced}")]);
        }
    }

    #[test]
    fn malformed_headers_give_no_parameters() {
        for value in
            ["", "Bearer", "=", "Bearer =", "\"", "Basic scope=\"x\"", "scope=x", "Bearer ;scope=x"]
        {
            assert_eq!(read(&[value]), Challenge::new(StatusCode::FORBIDDEN), "{value}");
        }
        assert_eq!(read(&["Bearer scope=\"open"]).scope, Some(Scopes::from(["open"])));
    }
}
