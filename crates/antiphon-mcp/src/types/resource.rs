//! Resources: data of a server with a URI.

use serde::{Deserialize, Serialize};

use super::content::{Annotations, ResourceContents};
use super::implementation::Icon;
use super::input_required::InputResponses;
use super::meta::Meta;
use super::number;
use super::pagination::{Cacheable, Cursor};
use super::request::ResultType;
use super::tool::JsonObject;

/// The description of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resource contains, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The size in bytes.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub size: Option<u64>,
    /// Icons of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata of the resource.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Resource {
    /// Describes a resource.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }
}

setters! { Resource {
    with_title => title: String,
    with_description => description: String,
    with_mime_type => mime_type: String,
    with_annotations => annotations: Annotations,
    with_size => size: u64,
    with_icons => icons: Vec<Icon>,
} }

/// The description of resources whose URIs have one form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template of the URIs, as in RFC 6570.
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources contain, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if all have the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons of the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata of the template.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceTemplate {
    /// Describes resources.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }
}

setters! { ResourceTemplate {
    with_title => title: String,
    with_description => description: String,
    with_mime_type => mime_type: String,
    with_annotations => annotations: Annotations,
    with_icons => icons: Vec<Icon>,
} }

/// The params of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The URI of the resource.
    pub uri: String,
    /// The answers to the input requests of the previous result (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the previous result, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadResourceParams {
    /// Reads a resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

setters! { ReadResourceParams {
    with_input_responses => input_responses: InputResponses,
    with_request_state => request_state: String,
} }

macro_rules! uri_params {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// The URI of the resource.
            pub uri: String,
            /// Metadata of the message.
            #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
            pub meta: Meta,
        }

        impl $name {
            /// Refers to a resource.
            pub fn new(uri: impl Into<String>) -> Self {
                Self { uri: uri.into(), meta: Meta::new() }
            }
        }
    };
}

uri_params! {
    /// The params of `resources/subscribe` (legacy).
    SubscribeParams
}

uri_params! {
    /// The params of `resources/unsubscribe` (legacy).
    UnsubscribeParams
}

uri_params! {
    /// The params of `notifications/resources/updated`.
    ResourceUpdatedParams
}

macro_rules! result {
    ($(#[$doc:meta])* $name:ident { $(#[$items_doc:meta])* $items:ident: $item:ty } $($next:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $(#[$items_doc])*
            pub $items: Vec<$item>,
            $(
                /// The next page; `None` on the last one.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $next: Option<Cursor>,
            )?
            /// How long the result may be cached.
            #[serde(flatten)]
            pub cache: Cacheable,
            /// The kind of result; absent in legacy revisions.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result_type: Option<ResultType>,
            /// Metadata of the result.
            #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
            pub meta: Meta,
            /// Other members.
            #[serde(flatten)]
            pub extra: JsonObject,
        }

        impl $name {
            /// Creates a result.
            pub fn new($items: Vec<$item>) -> Self {
                Self { $items, ..Self::default() }
            }
        }

        setters! { $name { with_result_type => result_type: ResultType } }
        $( setters! { $name { with_next_cursor => $next: Cursor } } )?
    };
}

result! {
    /// The result of `resources/list`.
    ListResourcesResult {
        /// The resources of this page.
        resources: Resource
    } next_cursor
}

result! {
    /// The result of `resources/templates/list`.
    ListResourceTemplatesResult {
        /// The templates of this page.
        resource_templates: ResourceTemplate
    } next_cursor
}

result! {
    /// The result of `resources/read`.
    ReadResourceResult {
        /// The contents: one for a file, several for a directory.
        contents: ResourceContents
    }
}

meta_setters! {
    Resource, ResourceTemplate, ReadResourceParams, SubscribeParams, UnsubscribeParams, ResourceUpdatedParams,
    ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult,
}
