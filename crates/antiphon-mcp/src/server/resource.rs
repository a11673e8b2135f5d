//! Resources and resource templates: their descriptions and their handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use antiphon::{BoxFuture, Code, ErrorObject};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::completion::{Completer, Completers};
use super::context::RequestContext;
use super::error::RequestError;
use super::forwarding::{Reply, ResultMembers};
use super::interest::OnSubscribe;
use super::uri_template::UriTemplate;
use crate::types::error_codes::RESOURCE_NOT_FOUND;
use crate::types::{
    Annotations, Cacheable, Icon, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};

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

type Reader<V> = Arc<dyn Fn(String, V, RequestContext) -> Reading + Send + Sync>;
pub(super) type Reading = BoxFuture<'static, Result<Reply<ReadResourceResult>, ErrorObject>>;

/// The content of a resource: what its reader may return.
///
/// A text, bytes, or [`ResourceContents`]. A [`ReadResourceResult`] for everything else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the content of a resource",
    label = "not the content of a resource",
    note = "a resource returns a text, bytes, `ResourceContents`, a list of them, a `ReadResourceResult`, or a `Result` of \
            one of these; its error is a `RequestError`, an `std::error::Error` or a text"
)]
pub trait IntoResourceContents {
    /// Converts the content of the resource with this URI and this type.
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult;
}

impl IntoResourceContents for ReadResourceResult {
    fn into_contents(self, _: &str, _: Option<&str>) -> ReadResourceResult {
        self
    }
}

impl IntoResourceContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> ReadResourceResult {
        ReadResourceResult::new(self)
    }
}

impl IntoResourceContents for ResourceContents {
    fn into_contents(self, _: &str, _: Option<&str>) -> ReadResourceResult {
        ReadResourceResult::new(vec![self])
    }
}

impl IntoResourceContents for String {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult {
        typed(ResourceContents::text(uri, self), mime_type)
    }
}

impl IntoResourceContents for &str {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult {
        self.to_owned().into_contents(uri, mime_type)
    }
}

impl IntoResourceContents for Vec<u8> {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult {
        typed(ResourceContents::blob(uri, self), mime_type)
    }
}

fn typed(contents: ResourceContents, mime_type: Option<&str>) -> ReadResourceResult {
    let contents = match mime_type {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    };
    ReadResourceResult::new(vec![contents])
}

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

/// Creates a template with this description, whose reader gets the URI. A template that URIs cannot be compared with
/// matches none.
pub(super) fn forwarded_template<F>(
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

/// The content of a resource of another server.
pub(super) fn passed_on(
    reading: impl Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
) -> Reading {
    Box::pin(async move { reading.await.map(Reply::Members).map_err(|RequestError(error)| error) })
}

fn read<C: IntoResourceContents>(
    content: Result<C, RequestError>,
    uri: &str,
) -> Result<Reply<ReadResourceResult>, ErrorObject> {
    let content = content.map(|content| content.into_contents(uri, None));
    content.map(Reply::Result).map_err(|RequestError(error)| error)
}

/// Gives content without a type that of its resource.
fn with_type(reading: Reading, mime_type: Option<String>) -> Reading {
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

/// Decodes the variables of a URI. A number in a URI is read as a number where the type wants one.
pub(crate) fn variables<V: DeserializeOwned>(
    values: BTreeMap<String, String>,
) -> Result<V, String> {
    use serde::de::value::{Error, MapDeserializer};
    let values = values.into_iter().map(|(name, value)| (name, Variable(value)));
    V::deserialize(MapDeserializer::<_, Error>::new(values)).map_err(|error| error.to_string())
}

/// A value of a URI: a text that can be read as another type.
struct Variable(String);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Variable {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident;)*) => {
        $(
            fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
                match self.0.parse() {
                    Ok(value) => visitor.$visit(value),
                    Err(error) => Err(serde::de::Error::custom(format!("`{}`: {error}", self.0))),
                }
            }
        )*
    };
}

impl<'de> serde::Deserializer<'de> for Variable {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    parsed! {
        deserialize_bool => visit_bool;
        deserialize_i8 => visit_i8;
        deserialize_i16 => visit_i16;
        deserialize_i32 => visit_i32;
        deserialize_i64 => visit_i64;
        deserialize_u8 => visit_u8;
        deserialize_u16 => visit_u16;
        deserialize_u32 => visit_u32;
        deserialize_u64 => visit_u64;
        deserialize_f32 => visit_f32;
        deserialize_f64 => visit_f64;
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: serde::de::Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let variant: serde::de::value::StringDeserializer<Self::Error> =
            serde::de::IntoDeserializer::into_deserializer(self.0);
        variant.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// The error of a resource that does not exist: its code has changed in 2026-07-28.
pub(crate) fn not_found(cx: &RequestContext, uri: &str) -> ErrorObject {
    let code = match cx.era().is_modern() {
        true => Code::INVALID_PARAMS.0,
        false => RESOURCE_NOT_FOUND,
    };
    ErrorObject::new(code, "Resource not found").with_data(&json!({ "uri": uri }))
}

/// Sets how long the content may be cached; for readers that know it.
///
/// ```
/// use antiphon_mcp::types::{CacheScope, Cacheable, ReadResourceResult, ResourceContents};
///
/// let mut result = ReadResourceResult::new(vec![ResourceContents::text("doc://a", "text")]);
/// result.cache = Cacheable::new(60_000, CacheScope::Public);
/// ```
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

/// A URI template that URIs cannot be compared with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTemplate(String);

impl fmt::Debug for ServerResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerResource").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTemplate").field("template", &self.template).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        id: u64,
        name: Option<String>,
        #[serde(default)]
        deep: bool,
    }

    fn place(values: &[(&str, &str)]) -> Result<Place, String> {
        let owned = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables(owned.collect())
    }

    #[test]
    fn variables_have_the_types_of_the_handler() {
        let expected = Place { id: 7, name: Some("x".to_owned()), deep: true };
        assert_eq!(place(&[("id", "7"), ("name", "x"), ("deep", "true")]).unwrap(), expected);
        assert!(place(&[("id", "seven")]).unwrap_err().contains("seven"));
    }
}
