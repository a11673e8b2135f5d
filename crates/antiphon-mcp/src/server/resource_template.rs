//! Resource templates: their descriptions and their handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::completion::{Completer, Completers};
use super::context::RequestContext;
use super::error::RequestError;
use super::forwarding::ResultMembers;
use super::interest::OnSubscribe;
use super::resource::{Reader, Reading, not_found, passed_on, read, with_type};
use super::resource_contents::IntoResourceContents;
use super::uri_template::UriTemplate;
use super::uri_variables::variables;
use crate::types::{Annotations, Icon, ResourceTemplate};

/// A family of resources: a template for their URIs, and their reader.
///
/// ```
/// use antiphon_mcp::{RequestContext, RequestError, ServerTemplate};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct User {
///     id: u64,
/// }
///
/// let users = ServerTemplate::new("user://{id}", "user", |User { id }, _cx: RequestContext| async move {
///     Ok::<_, RequestError>(format!("user number {id}"))
/// })?;
/// # Ok::<(), antiphon_mcp::InvalidTemplate>(())
/// ```
#[derive(Clone)]
pub struct ServerTemplate {
    template: ResourceTemplate,
    pub(super) uris: UriTemplate,
    reader: Reader<BTreeMap<String, String>>,
    pub(super) completers: Completers,
    pub(super) on_subscribe: Option<OnSubscribe>,
}

impl ServerTemplate {
    /// Creates a template. The handler gets the variables of the URI as a struct or a map.
    ///
    /// # Errors
    /// Fails if the template is not one that a URI can be compared with: it has `{name}` for one part of a path, and
    /// `{+name}` or `{name*}` for several.
    pub fn new<V, C, F>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        reader: impl Fn(V, RequestContext) -> F + Send + Sync + 'static,
    ) -> Result<Self, InvalidTemplate>
    where
        V: DeserializeOwned + 'static,
        C: IntoResourceContents,
        F: Future<Output = Result<C, RequestError>> + Send + 'static,
    {
        let template = ResourceTemplate::new(uri_template, name);
        let uris = UriTemplate::parse(&template.uri_template).map_err(InvalidTemplate)?;
        let reader: Reader<BTreeMap<String, String>> = Arc::new(move |uri, values, cx| {
            let values = match variables::<V>(values) {
                Ok(values) => values,
                Err(_) => return Box::pin(std::future::ready(Err(not_found(&cx, &uri)))),
            };
            let reading = reader(values, cx);
            Box::pin(async move { read(reading.await, &uri) })
        });
        Ok(Self { template, uris, reader, completers: Completers::default(), on_subscribe: None })
    }

    /// The description, as clients get it.
    pub fn template(&self) -> &ResourceTemplate {
        &self.template
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.template.title = Some(title.into());
        self
    }

    /// Sets what the resources are, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.template.description = Some(description.into());
        self
    }

    /// Sets the media type of all resources, also of the content that has none.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.template.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the hints for clients.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.template.annotations = Some(annotations);
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.template.icons.get_or_insert_default().push(icon);
        self
    }

    /// Completes a variable. The closure gets what the user has typed, and the variables that are known already.
    #[must_use]
    pub fn complete<F>(
        mut self,
        variable: &str,
        complete: impl Fn(String, BTreeMap<String, String>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        debug_assert!(self.uris.variables().any(|known| known == variable), "{variable}");
        self.completers.insert(variable, Completer::new(complete));
        self
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.completers
    }

    pub(crate) fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        self.uris.read(uri)
    }

    pub(crate) fn read(
        &self,
        uri: &str,
        values: BTreeMap<String, String>,
        cx: RequestContext,
    ) -> Reading {
        with_type((self.reader)(uri.to_owned(), values, cx), self.template.mime_type.clone())
    }
}

/// Creates a template with this description, whose reader gets the URI. A template that URIs cannot be compared with
/// matches none.
pub(super) fn forwarded<F>(
    template: ResourceTemplate,
    reader: impl Fn(String, RequestContext) -> F + Send + Sync + 'static,
) -> ServerTemplate
where
    F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
{
    let uris = UriTemplate::parse(&template.uri_template);
    let uris = uris.inspect_err(|reason| tracing::debug!(reason, "a template matches no URI"));
    let uris = uris.unwrap_or_else(|_| UriTemplate::unmatched());
    let reader: Reader<BTreeMap<String, String>> =
        Arc::new(move |uri, _, cx| passed_on(reader(uri, cx)));
    let completers = Completers::default();
    ServerTemplate { template, uris, reader, completers, on_subscribe: None }
}

/// A URI template that URIs cannot be compared with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTemplate(String);

impl fmt::Debug for ServerTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTemplate").field("template", &self.template).finish_non_exhaustive()
    }
}
