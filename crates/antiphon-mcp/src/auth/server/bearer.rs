//! The token of a request.
//!
//! The token is taken from the `Authorization` header only, never from the query or the body (MCP, "Token
//! Requirements").

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::auth::Secret;

/// The reason why a request has no token.
#[derive(Debug, PartialEq)]
pub(super) enum NoToken {
    /// There are no credentials, or credentials of another scheme.
    Missing,
    /// The header is malformed.
    Malformed(&'static str),
}

/// Returns the token of a request (RFC 6750, section 2.1).
pub(super) fn token(headers: &HeaderMap) -> Result<Secret, NoToken> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (None, _) => return Err(NoToken::Missing),
        // A proxy in front of the server may have checked a different one.
        (Some(_), Some(_)) => {
            return Err(NoToken::Malformed("there are several Authorization headers; send one"));
        }
    };
    let text = value.to_str().map_err(|_| MALFORMED)?.trim();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(NoToken::Missing);
    }
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(is_token68) {
        return Err(MALFORMED);
    }
    Ok(Secret::new(token))
}

const MALFORMED: NoToken =
    NoToken::Malformed("the Authorization header is malformed; send Bearer and one token");

fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&str]) -> Result<Secret, NoToken> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        token(&headers)
    }

    #[test]
    fn only_one_well_formed_bearer_token_is_taken() {
        assert_eq!(read(&["bEARER  a.b-c=="]), Ok(Secret::new("a.b-c==")));
        assert_eq!(read(&[]), Err(NoToken::Missing));
        assert_eq!(read(&["Basic YTpi"]), Err(NoToken::Missing));
        for values in [&["Bearer"][..], &["Bearer a b"], &["Bearer a,b"], &["Bearer a", "Bearer a"]]
        {
            assert!(matches!(read(values), Err(NoToken::Malformed(_))), "{values:?}");
        }
    }
}
