//! Resources: their descriptions and their readers.

use std::fmt;
use std::sync::Arc;

use antiphon::{BoxFuture, Code, ErrorObject};
use serde_json::json;

use super::context::RequestContext;
use super::error::RequestError;
use super::forwarding::{Reply, ResultMembers};
use super::interest::OnSubscribe;
use super::resource_contents::IntoResourceContents;
use crate::types::error_codes::RESOURCE_NOT_FOUND;
use crate::types::{Annotations, Cacheable, Icon, ReadResourceResult, Resource};

/// A resource of a server: its description and its reader.
///
/// ```
/// use antiphon_mcp::{RequestContext, RequestError, ServerResource};
///
/// let readme = ServerResource::new("doc://readme", "readme", |_cx: RequestContext| async {
///     Ok::<_, RequestError>("the text of the file")
/// })
/// .mime_type("text/plain");
/// ```
#[derive(Clone)]
pub struct ServerResource {
    resource: Resource,
    reader: Reader<()>,
    pub(super) on_subscribe: Option<OnSubscribe>,
}

pub(super) type Reader<V> = Arc<dyn Fn(String, V, RequestContext) -> Reading + Send + Sync>;
pub(super) type Reading = BoxFuture<'static, Result<Reply<ReadResourceResult>, ErrorObject>>;

impl ServerResource {
    /// Creates a resource.
    pub fn new<C, F>(
        uri: impl Into<String>,
        name: impl Into<String>,
        reader: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: IntoResourceContents,
        F: Future<Output = Result<C, RequestError>> + Send + 'static,
    {
        let resource = Resource::new(uri, name);
        let reader: Reader<()> = Arc::new(move |uri, (), cx| {
            let reading = reader(cx);
            Box::pin(async move { read(reading.await, &uri) })
        });
        Self { resource, reader, on_subscribe: None }
    }

    /// The description, as clients get it.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.resource.title = Some(title.into());
        self
    }

    /// Sets what the resource is, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.resource.description = Some(description.into());
        self
    }

    /// Sets the media type, also of the content that has none.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.resource.size = Some(bytes);
        self
    }

    /// Sets the hints for clients.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.resource.icons.get_or_insert_default().push(icon);
        self
    }

    pub(crate) fn read(&self, uri: &str, cx: RequestContext) -> Reading {
        with_type((self.reader)(uri.to_owned(), (), cx), self.resource.mime_type.clone())
    }
}

/// Creates a resource with this description, whose content is passed on.
pub(super) fn forwarded<F>(
    resource: Resource,
    reader: impl Fn(RequestContext) -> F + Send + Sync + 'static,
) -> ServerResource
where
    F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
{
    let reader: Reader<()> = Arc::new(move |_, (), cx| passed_on(reader(cx)));
    ServerResource { resource, reader, on_subscribe: None }
}

/// The content of a resource of another server.
pub(super) fn passed_on(
    reading: impl Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
) -> Reading {
    Box::pin(async move { reading.await.map(Reply::Members).map_err(|RequestError(error)| error) })
}

pub(super) fn read<C: IntoResourceContents>(
    content: Result<C, RequestError>,
    uri: &str,
) -> Result<Reply<ReadResourceResult>, ErrorObject> {
    let content = content.map(|content| content.into_contents(uri, None));
    content.map(Reply::Result).map_err(|RequestError(error)| error)
}

/// Gives content without a type that of its resource.
pub(super) fn with_type(reading: Reading, mime_type: Option<String>) -> Reading {
    let Some(mime_type) = mime_type else { return reading };
    Box::pin(async move {
        let mut reply = reading.await?;
        if let Reply::Result(result) = &mut reply {
            for contents in &mut result.contents {
                contents.mime_type.get_or_insert_with(|| mime_type.clone());
            }
        }
        Ok(reply)
    })
}

/// The error of a resource that does not exist: its code has changed in 2026-07-28.
pub(crate) fn not_found(cx: &RequestContext, uri: &str) -> ErrorObject {
    let code = match cx.era().is_modern() {
        true => Code::INVALID_PARAMS.0,
        false => RESOURCE_NOT_FOUND,
    };
    ErrorObject::new(code, "Resource not found").with_data(&json!({ "uri": uri }))
}

/// Adds how long the content may be cached, unless its reader has said so.
pub(crate) fn with_cache(
    mut result: ReadResourceResult,
    default: &Cacheable,
) -> ReadResourceResult {
    if result.cache.ttl_ms.is_none() {
        result.cache.ttl_ms = default.ttl_ms;
    }
    if result.cache.cache_scope.is_none() {
        result.cache.cache_scope = default.cache_scope;
    }
    result
}

impl fmt::Debug for ServerResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerResource").field("resource", &self.resource).finish_non_exhaustive()
    }
}
