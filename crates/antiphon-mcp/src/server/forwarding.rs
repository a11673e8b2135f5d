//! What a server needs that offers the tools, resources and prompts of others.
//!
//! Their descriptions come from elsewhere, their arguments are checked elsewhere, and their results are passed on as they
//! are.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon::{BoxFuture, RawJson};

use super::completion::Completers;
use super::context::RequestContext;
use super::error::RequestError;
use super::interest::OnSubscribe;
use super::prompt::ServerPrompt;
use super::resource::{self, ServerResource};
use super::resource_template::{self, ServerTemplate};
use super::session::Session;
use super::tool::ServerTool;
use super::tool_handler::dynamic_handler;
use super::tool_result::IntoToolResult;
use super::{McpServer, ServerBuilder};
use crate::types::{CompleteParams, Implementation, Resource, ResourceTemplate, Tool};

impl ServerTool {
    /// Creates a tool whose arguments are checked by another server. A header that its schema asks for wrongly is
    /// ignored.
    pub(crate) fn forwarded<R, F>(
        tool: Tool,
        handler: impl Fn(RawJson, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        R: IntoToolResult + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        Self::from_parts(tool, dynamic_handler(handler))
    }
}

impl ServerResource {
    /// Creates a resource with this description.
    pub(crate) fn described<F>(
        resource: Resource,
        reader: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        resource::forwarded(resource, reader)
    }
}

impl ServerTemplate {
    /// Creates a template with this description. The reader gets the URI. A template that URIs cannot be compared with is
    /// only listed.
    pub(crate) fn described<F>(
        template: ResourceTemplate,
        reader: impl Fn(String, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        resource_template::forwarded(template, reader)
    }

    /// Completes its variables at another server.
    pub(crate) fn completed_by<F>(
        mut self,
        forward: impl Fn(CompleteParams, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        self.completers = Completers::forwarded(forward);
        self
    }
}

impl ServerPrompt {
    /// Completes its arguments at another server.
    pub(crate) fn completed_by<F>(
        mut self,
        forward: impl Fn(CompleteParams, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        self.completers = Completers::forwarded(forward);
        self
    }
}

/// Reads the resources that no resource and no template of a server has.
#[derive(Clone)]
pub(crate) struct OtherReader(Arc<ReadOther>);

type ReadOther = dyn Fn(String, RequestContext) -> super::resource::Reading + Send + Sync;

impl OtherReader {
    pub(super) fn read(&self, uri: &str, cx: RequestContext) -> super::resource::Reading {
        (self.0)(uri.to_owned(), cx)
    }
}

impl std::fmt::Debug for OtherReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtherReader")
    }
}

impl ServerBuilder {
    /// Takes the name and the description of another server.
    pub(crate) fn identify(mut self, implementation: Implementation) -> Self {
        self.implementation = implementation;
        self
    }

    /// Reads every resource that no resource and no template of the server has.
    pub(crate) fn read_other<F>(
        mut self,
        reader: impl Fn(String, RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResultMembers, RequestError>> + Send + 'static,
    {
        let read: Arc<ReadOther> = Arc::new(move |uri, cx| resource::passed_on(reader(uri, cx)));
        self.settings.read_other = Some(OtherReader(read));
        self
    }

    /// Calls a function with each subscription to a resource that no resource and no template of the server has.
    pub(crate) fn subscribe_other(
        mut self,
        react: impl Fn(&str, &McpServer) + Send + Sync + 'static,
    ) -> Self {
        self.settings.subscribe_other = Some(OtherSubscriber(Arc::new(react)));
        self
    }

    /// Calls a function when a legacy client can be asked for its roots, and each time that they have changed.
    pub(crate) fn on_roots_changed(
        mut self,
        react: impl Fn(&Arc<Session>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.settings.roots_listener = Some(RootsListener(Arc::new(react)));
        self
    }
}

/// Learns when a legacy client has roots, or other roots than before.
#[derive(Clone)]
pub(crate) struct RootsListener(Arc<RootsChanged>);

type RootsChanged = dyn Fn(&Arc<Session>) -> BoxFuture<'static, ()> + Send + Sync;

impl RootsListener {
    pub(super) fn changed(&self, session: &Arc<Session>) -> BoxFuture<'static, ()> {
        (self.0)(session)
    }
}

impl std::fmt::Debug for RootsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RootsListener")
    }
}

/// Follows the resources that no resource and no template of a server has.
#[derive(Clone)]
pub(crate) struct OtherSubscriber(pub(super) OnSubscribe);

impl std::fmt::Debug for OtherSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtherSubscriber")
    }
}

/// The members of a result, each byte for byte.
pub(crate) type ResultMembers = BTreeMap<String, RawJson>;

/// What a handler has made: a result of this server, or the members of the result of another server.
pub(crate) enum Reply<R> {
    Result(R),
    Members(ResultMembers),
}
