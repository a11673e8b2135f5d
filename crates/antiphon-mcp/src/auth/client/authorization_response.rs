//! The response of the authorization endpoint, which arrives by the redirect (RFC 6749, section 4.1.2; RFC 9207).

use url::form_urlencoded;

use super::ServerMetadata;
use crate::auth::Secret;
use crate::auth::web_url::shortened;

/// The reason why an authorization response gives no code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// The state is not that of the request.
    #[error("the response belongs to another request; start again")]
    State,
    /// The issuer is absent, although the server announces it.
    #[error("the response does not name its issuer {0}; another server may have sent it")]
    NoIssuer(String),
    /// The issuer is another one. What the response says is ignored.
    #[error("the response is not from the issuer {0}; another server may have sent it")]
    OtherIssuer(String),
    /// A parameter appears twice.
    #[error("the response contains the parameter {0} twice")]
    Duplicate(&'static str),
    /// The user or the server refused.
    #[error("the authorization server answered {error}{}", description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// The error code, such as `access_denied`.
        error: String,
        /// The reason for developers.
        description: Option<String>,
    },
    /// There is no code.
    #[error("the response contains no authorization code")]
    NoCode,
}

/// Returns the authorization code of a response, after all checks.
pub(super) fn code(
    query: &str,
    state: &str,
    server: &ServerMetadata,
) -> Result<Secret, ResponseError> {
    if one(query, "state")?.as_deref() != Some(state) {
        return Err(ResponseError::State);
    }
    // RFC 9207, section 2.4: before anything else of the response is used, compared as plain texts.
    match one(query, "iss")? {
        Some(issuer) if issuer != server.issuer => {
            return Err(ResponseError::OtherIssuer(server.issuer.clone()));
        }
        None if server.authorization_response_iss_parameter_supported => {
            return Err(ResponseError::NoIssuer(server.issuer.clone()));
        }
        _ => {}
    }
    if let Some(error) = one(query, "error")? {
        let description = one(query, "error_description")?.map(|text| shortened(&text));
        return Err(ResponseError::Refused { error: shortened(&error), description });
    }
    one(query, "code")?.map(Secret::new).ok_or(ResponseError::NoCode)
}

/// Returns the value of a parameter that may appear once.
fn one(query: &str, name: &'static str) -> Result<Option<String>, ResponseError> {
    let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(ResponseError::Duplicate(name)),
        (value, None) => Ok(value.map(|(_, value)| value.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, announces_issuer: bool) -> Result<Secret, ResponseError> {
        let server = ServerMetadata {
            issuer: "https://a.example".to_owned(),
            authorization_response_iss_parameter_supported: announces_issuer,
            ..ServerMetadata::default()
        };
        code(query, "s1", &server)
    }

    #[test]
    fn responses_of_other_requests_and_servers_are_refused() {
        let issuer = "https://a.example".to_owned();
        for (query, announced, error) in [
            ("code=c", false, ResponseError::State),
            ("code=c&state=s2", false, ResponseError::State),
            ("code=c&state=s1&state=s1", false, ResponseError::Duplicate("state")),
            ("code=c&state=s1", true, ResponseError::NoIssuer(issuer.clone())),
            (
                "code=c&state=s1&iss=https://b.example",
                true,
                ResponseError::OtherIssuer(issuer.clone()),
            ),
            (
                "code=c&state=s1&iss=https://a.example/",
                false,
                ResponseError::OtherIssuer(issuer.clone()),
            ),
            // The error of another server is not shown.
            ("error=x&state=s1&iss=https://b.example", false, ResponseError::OtherIssuer(issuer)),
            ("state=s1", false, ResponseError::NoCode),
            ("code=a&code=b&state=s1", false, ResponseError::Duplicate("code")),
        ] {
            assert_eq!(read(query, announced), Err(error), "{query}");
        }
    }

    #[test]
    fn the_code_and_the_error_of_the_server_are_read() {
        let code = Ok(Secret::new("c d"));
        assert_eq!(read("code=c+d&state=s1", false), code);
        assert_eq!(read("code=c+d&state=s1&iss=https%3A%2F%2Fa.example", true), code);
        assert_eq!(
            read("error=access_denied&error_description=not+you&state=s1", false),
            Err(ResponseError::Refused {
                error: "access_denied".to_owned(),
                description: Some("not you".to_owned())
            })
        );
    }
}
