//! An MCP server as a protected resource (RFC 9728).

use bytes::Bytes;
use url::Url;

use crate::auth::resource_metadata::WELL_KNOWN;
use crate::auth::web_url::{UrlRule, WebUrlError, origin, well_known};
use crate::auth::{ResourceMetadata, Scopes};

/// An MCP server as a protected resource: its canonical URI, and the authorization servers that it trusts.
///
/// ```
/// use antiphon_mcp::auth::server::ProtectedResource;
///
/// let resource = ProtectedResource::new("https://mcp.example/mcp")?
///     .authorization_server("https://auth.example")?
///     .scopes(["files:read"]);
/// assert_eq!(
///     resource.metadata_url(),
///     "https://mcp.example/.well-known/oauth-protected-resource/mcp"
/// );
/// # Ok::<(), antiphon_mcp::auth::server::ResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    metadata: ResourceMetadata,
    metadata_url: String,
    paths: [String; 2],
}

/// The reason why a protected resource is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The URI of the server or of an authorization server is refused.
    #[error(transparent)]
    Url(#[from] WebUrlError),
}

impl ProtectedResource {
    /// Creates the resource with this canonical URI: the URL of the MCP endpoint, as clients use it. Leave out the slash
    /// at the end.
    ///
    /// # Errors
    /// Fails if the URI is neither `https` nor on a loopback address, or has a fragment.
    pub fn new(uri: &str) -> Result<Self, ResourceError> {
        let url = UrlRule::Local.parse(uri)?;
        let metadata_url = well_known(&url, WELL_KNOWN);
        let path = |url: &str| Url::parse(url).map(|url| url.path().to_owned()).unwrap_or_default();
        let root = format!("{}/.well-known/{WELL_KNOWN}", origin(&url));
        Ok(Self {
            paths: [path(&metadata_url), path(&root)],
            metadata_url,
            metadata: ResourceMetadata {
                resource: uri.to_owned(),
                bearer_methods_supported: vec!["header".to_owned()],
                ..ResourceMetadata::default()
            },
        })
    }

    /// Trusts this authorization server, given by its issuer. Clients prefer the first.
    ///
    /// # Errors
    /// Fails if the issuer is neither `https` nor on a loopback address.
    pub fn authorization_server(mut self, issuer: &str) -> Result<Self, ResourceError> {
        UrlRule::Local.parse(issuer)?;
        self.metadata.authorization_servers.push(issuer.to_owned());
        Ok(self)
    }

    /// Publishes the scopes for basic use of the server. Clients request them if a challenge names none. Leave out
    /// `offline_access`, which is no scope of a resource.
    #[must_use]
    pub fn scopes(mut self, scopes: impl Into<Scopes>) -> Self {
        self.metadata.scopes_supported = Some(scopes.into());
        self
    }

    /// Publishes the name of the server for users.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata.resource_name = Some(name.into());
        self
    }

    /// Publishes the URL of documentation for developers.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.metadata.resource_documentation = Some(url.into());
        self
    }

    /// Returns the canonical URI.
    pub fn uri(&self) -> &str {
        &self.metadata.resource
    }

    /// Returns the metadata document.
    pub fn metadata(&self) -> &ResourceMetadata {
        &self.metadata
    }

    /// Returns the URL of the metadata document.
    pub fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// Whether this path serves the metadata document: the well-known path of the resource, or of the root.
    pub(super) fn is_metadata_path(&self, path: &str) -> bool {
        self.paths.iter().any(|known| known == path)
    }

    /// Returns the encoded metadata document.
    pub(super) fn document(&self) -> Bytes {
        // It consists of texts and Arrays of texts only.
        Bytes::from(serde_json::to_vec(&self.metadata).unwrap_or_default())
    }
}
