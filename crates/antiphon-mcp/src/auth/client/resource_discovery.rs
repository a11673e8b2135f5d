//! Which authorization servers an MCP server trusts (RFC 9728).

use url::Url;

use super::OAuthError;
use crate::auth::resource_metadata::WELL_KNOWN;
use crate::auth::web_url::{UrlRule, origin, shortened, well_known};
use crate::auth::{Challenge, FetchError, HttpFetch, ResourceMetadata};

/// Fetches the metadata of an MCP server. Returns `None` if the server publishes none.
///
/// The URL in the challenge has priority. Otherwise the well-known URL with the path of the server is tried, and then
/// the one of its origin.
pub(super) async fn discover(
    server: &Url,
    challenge: &Challenge,
    fetch: &HttpFetch,
    rule: UrlRule,
) -> Result<Option<ResourceMetadata>, OAuthError> {
    if let Some(url) = &challenge.resource_metadata {
        let url = rule.parse(url)?;
        let metadata = fetch.json(&url, rule).await?;
        return check(metadata, &url, server).map(Some);
    }
    for candidate in candidates(server) {
        let url = rule.parse(&candidate)?;
        match fetch.json(&url, rule).await {
            Ok(metadata) => return check(metadata, &url, server).map(Some),
            // Some servers answer every path with a page.
            Err(error) if error.is_absent() || matches!(error, FetchError::Json { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The well-known URLs of an MCP server, in the order of the specification.
pub(super) fn candidates(server: &Url) -> Vec<String> {
    let root = format!("{}/.well-known/{WELL_KNOWN}", origin(server));
    let mut candidates = vec![well_known(server, WELL_KNOWN), root];
    candidates.dedup();
    candidates
}

/// RFC 9728, section 3.3: metadata about another resource must not be used.
fn check(
    metadata: ResourceMetadata,
    url: &Url,
    server: &Url,
) -> Result<ResourceMetadata, OAuthError> {
    if !covers(&metadata.resource, server) {
        return Err(OAuthError::ResourceMismatch {
            metadata: url.to_string(),
            resource: shortened(&metadata.resource),
            server: server.to_string(),
        });
    }
    if metadata.authorization_servers.is_empty() {
        return Err(OAuthError::NoAuthorizationServer(url.to_string()));
    }
    Ok(metadata)
}

/// Whether a resource is the server, or the part of its origin that contains it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && resource.query().is_none_or(|query| server.query() == Some(query))
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_and_the_paths_above_it_are_its_resource() {
        let server = Url::parse("https://m.example/a/mcp").unwrap();
        for resource in [
            "https://m.example/a/mcp",
            "https://M.example/a/",
            "https://m.example",
            "https://m.example:443/a/mcp/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://evil.example/a/mcp",
            "http://m.example/a/mcp",
            "https://m.example:8443/a/mcp",
            "https://m.example/a/mc",
            "https://m.example/a/mcp/tools",
            "https://m.example/a/mcp#x",
            "https://m.example/a/mcp?x",
            "m.example/a/mcp",
            "",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn a_server_at_the_root_has_one_well_known_url() {
        let of = |url: &str| candidates(&Url::parse(url).unwrap());
        assert_eq!(
            of("https://m.example"),
            ["https://m.example/.well-known/oauth-protected-resource"]
        );
        assert_eq!(of("https://m.example/mcp").len(), 2);
    }
}
