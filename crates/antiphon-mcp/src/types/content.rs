//! Content of messages: text, images, audio and resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::meta::Meta;
use super::number;
use super::resource::Resource;

/// One block of content.
///
/// ```
/// use antiphon_mcp::types::ContentBlock;
///
/// let block = ContentBlock::text("18 °C");
/// assert_eq!(serde_json::to_string(&block)?, r#"{"type":"text","text":"18 °C"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// The URI of a resource.
    ResourceLink(ResourceLink),
    /// The contents of a resource.
    Resource(EmbeddedResource),
    /// A block of a type that this crate does not know, with its `type`.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl ContentBlock {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from bytes.
    pub fn image(data: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates audio from bytes.
    pub fn audio(data: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Refers to a resource.
    pub fn resource_link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// Includes a resource.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Reads a block whose members are known.
    pub(super) fn from_members(mut members: Map<String, Value>) -> Result<Self, serde_json::Error> {
        Ok(match block_type(&members)? {
            "text" => Self::Text(from_map(members)?),
            "image" => Self::Image(from_map(members)?),
            "audio" => Self::Audio(from_map(members)?),
            "resource_link" => {
                // It is not one of the other members of the resource.
                members.remove("type");
                Self::ResourceLink(from_map(members)?)
            }
            "resource" => Self::Resource(from_map(members)?),
            _ => Self::Other(members),
        })
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_members(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// The member `type`, which every block has.
pub(super) fn block_type(members: &Map<String, Value>) -> Result<&str, serde_json::Error> {
    let block_type = members.get("type").and_then(Value::as_str);
    block_type.ok_or_else(|| serde_json::Error::custom("content without a `type`"))
}

pub(super) fn from_map<T: DeserializeOwned>(
    members: Map<String, Value>,
) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::Object(members))
}

/// A text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TextContent {
    /// Creates a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

macro_rules! binary_content {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// The data in base64.
            pub data: String,
            /// The media type of the data.
            pub mime_type: String,
            /// Hints for clients.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub annotations: Option<Annotations>,
            /// Metadata of the block.
            #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
            pub meta: Meta,
        }

        impl $name {
            /// Encodes bytes.
            pub fn new(data: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
                Self::from_base64(STANDARD.encode(data), mime_type)
            }

            /// Takes data that is already in base64.
            pub fn from_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
                Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
            }

            /// Decodes the data.
            ///
            /// # Errors
            /// Fails if the data is not base64.
            pub fn bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
                STANDARD.decode(&self.data)
            }
        }
    };
}

binary_content! {
    /// An image.
    ImageContent
}

binary_content! {
    /// Audio.
    AudioContent
}

/// The URI of a resource. It has the members of a [`Resource`].
pub type ResourceLink = Resource;

/// The contents of a resource in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl EmbeddedResource {
    /// Includes contents.
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: Meta::new() }
    }
}

setters! { TextContent { with_annotations => annotations: Annotations } }
setters! { ImageContent { with_annotations => annotations: Annotations } }
setters! { AudioContent { with_annotations => annotations: Annotations } }
setters! { EmbeddedResource { with_annotations => annotations: Annotations } }
meta_setters! { TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceContents }

/// The contents of a resource: a text, or bytes in base64. Exactly one of the two is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Contents")]
#[non_exhaustive]
pub struct ResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// The media type of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Metadata of the contents.
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters! { ResourceContents { with_mime_type => mime_type: String } }

impl ResourceContents {
    /// Creates a text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), text: Some(text.into()), ..Self::default() }
    }

    /// Creates contents from bytes.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self { uri: uri.into(), blob: Some(STANDARD.encode(bytes)), ..Self::default() }
    }

    /// Returns the text as bytes, or the decoded blob.
    ///
    /// # Errors
    /// Fails if the blob is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
        match (&self.text, &self.blob) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (None, Some(blob)) => STANDARD.decode(blob),
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// The contents as they are read, before the check.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

impl TryFrom<Contents> for ResourceContents {
    type Error = &'static str;

    fn try_from(read: Contents) -> Result<Self, &'static str> {
        if read.text.is_some() == read.blob.is_some() {
            return Err("contents of a resource need either `text` or `blob`");
        }
        let Contents { uri, mime_type, text, blob, meta } = read;
        Ok(Self { uri, mime_type, text, blob, meta })
    }
}

/// Hints for clients about content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Who the content is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Creates annotations without hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { Annotations {
    with_audience => audience: Vec<Role>,
    with_priority => priority: f64,
    with_last_modified => last_modified: String,
} }

/// Who speaks in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}
