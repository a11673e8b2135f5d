//! The responses of the authorization itself: challenges (RFC 6750, section 3) and the metadata document.

use antiphon::transport::http::HttpBody;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::ProtectedResource;
use crate::auth::Scopes;

/// Returns the value of `www-authenticate`.
pub(super) fn challenge(
    resource: &ProtectedResource,
    scopes: Option<&Scopes>,
    error: Option<(&str, &str)>,
) -> HeaderValue {
    let mut text = String::from("Bearer ");
    if let Some((code, description)) = error {
        push(&mut text, "error", code);
        push(&mut text, "error_description", description);
    }
    if let Some(scopes) = scopes.filter(|scopes| !scopes.is_empty()) {
        push(&mut text, "scope", &scopes.to_string());
    }
    push(&mut text, "resource_metadata", resource.metadata_url());
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// Appends a quoted parameter. Characters that a header cannot carry are left out.
fn push(text: &mut String, name: &str, value: &str) {
    if text.ends_with('"') {
        text.push_str(", ");
    }
    text.push_str(name);
    text.push_str("=\"");
    for character in value.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()) {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

/// A response with a challenge and a short text. It says no more than the metadata document, so every page that the guard
/// accepts may read it.
pub(super) fn refused(
    status: StatusCode,
    challenge: Option<HeaderValue>,
    text: &str,
) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(format!("{text}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if let Some(value) = challenge {
        insert_challenge(headers, value);
    }
    response
}

/// Adds a challenge that pages may read.
pub(super) fn insert_challenge(headers: &mut HeaderMap, challenge: HeaderValue) {
    headers.insert(WWW_AUTHENTICATE, challenge);
    let exposed = HeaderValue::from_static("www-authenticate");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// The response while tokens cannot be verified.
pub(super) fn unavailable() -> Response<HttpBody> {
    let text = "tokens cannot be verified at the moment; try again later";
    let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, None, text);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// The metadata document. It is public, so every page that the guard accepts may read it.
pub(super) fn document(method: &Method, resource: &ProtectedResource) -> Response<HttpBody> {
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let mut response = Response::new(HttpBody::from(resource.document()));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
            response
        }
        Method::OPTIONS => {
            let mut response = refused(StatusCode::NO_CONTENT, None, "");
            *response.body_mut() = HttpBody::default();
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            response
        }
        _ => {
            let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, None, "use GET");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
    };
    let everyone = HeaderValue::from_static("*");
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, everyone);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Challenge;

    #[test]
    fn clients_read_what_the_server_writes() {
        let resource = ProtectedResource::new("https://m.example/mcp").unwrap();
        let scopes = Scopes::from(["a:read", "odd\"scope"]);
        let value = challenge(&resource, Some(&scopes), Some(("invalid_token", "say \\ \"x\"\n")));
        let headers = [(WWW_AUTHENTICATE, value)].into_iter().collect();
        let read = Challenge::of_response(StatusCode::UNAUTHORIZED, &headers);
        assert_eq!(read.scope, Some(scopes));
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        assert_eq!(read.error_description.as_deref(), Some("say \\ \"x\""));
        assert_eq!(read.resource_metadata.as_deref(), Some(resource.metadata_url()));
    }

    #[test]
    fn a_challenge_without_an_error_has_no_error_code() {
        let resource = ProtectedResource::new("https://m.example").unwrap();
        assert_eq!(
            challenge(&resource, None, None),
            "Bearer resource_metadata=\"https://m.example/.well-known/oauth-protected-resource\""
        );
    }
}
