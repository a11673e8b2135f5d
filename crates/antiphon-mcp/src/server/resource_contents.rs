//! What the reader of a resource may return.

use crate::types::{ReadResourceResult, ResourceContents};

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
