//! The tools and resources of a document.

use std::collections::BTreeSet;
use std::sync::Arc;

use antiphon::openrpc::{Document, Method};
use serde_json::Value;

use super::arguments::MethodParams;
use super::call::{MethodCaller, MethodTarget};
use super::description::{description, title};
use super::error::FromOpenRpcError;
use super::feed::Feeds;
use super::input::Input;
use super::names::tool_names;
use super::output::Output;
use super::schemas::Schemas;
use super::topics::Topics;
use super::{ToolsFromOpenRpc, read_only, subscriptions};
use crate::types::{Tool, ToolAnnotations};
use crate::{RequestContext, ServerResource, ServerTemplate, ServerTool};

/// The largest number of values in the schemas of all tools.
const MAX_VALUES: usize = 500_000;

/// The method that returns the document itself.
const DISCOVER: &str = "rpc.discover";

/// What a server offers.
#[derive(Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<ServerTool>,
    pub(super) resources: Vec<ServerResource>,
    pub(super) templates: Vec<ServerTemplate>,
}

impl ToolsFromOpenRpc {
    pub(super) fn offer(&self) -> Result<Offer, FromOpenRpcError> {
        self.check_renamed()?;
        let topics = Topics::of(&self.document);
        let mut seen = BTreeSet::new();
        let offered =
            self.document.methods.iter().filter(|method| {
                self.is_allowed(&method.name) && seen.insert(method.name.as_str())
            });
        let (about_topics, methods): (Vec<&Method>, Vec<&Method>) =
            offered.partition(|method| topics.is_about(&method.name));
        let mut offer = Offer { tools: self.tools(&methods)?, ..Offer::default() };
        if self.has_subscriptions {
            let feeds = Feeds::new(self.client.clone(), self.feeds.clone(), self.timeout);
            for topic in about_topics.iter().flat_map(|method| topics.opened_by(&method.name)) {
                subscriptions::offer(topic, &feeds, &mut offer);
            }
        }
        match offer.is_empty() {
            true => Err(self.nothing()),
            false => Ok(offer),
        }
    }

    fn check_renamed(&self) -> Result<(), FromOpenRpcError> {
        let is_known = |name: &String| self.document.methods.iter().any(|it| it.name == *name);
        match self.renamed.keys().find(|name| !is_known(name)) {
            Some(unknown) => Err(FromOpenRpcError::UnknownMethod { method: unknown.clone() }),
            None => Ok(()),
        }
    }

    fn nothing(&self) -> FromOpenRpcError {
        let Document { methods, info, .. } = &self.document;
        match methods.first() {
            None => FromOpenRpcError::Empty { service: info.title.clone() },
            Some(first) => FromOpenRpcError::NothingAllowed {
                methods: methods.len(),
                first: first.name.clone(),
            },
        }
    }

    fn is_allowed(&self, method: &str) -> bool {
        method != DISCOVER
            && self.allowed.as_ref().is_none_or(|allowed| allowed.match_any(method))
            && !self.denied.match_any(method)
    }

    fn tools(&self, methods: &[&Method]) -> Result<Vec<ServerTool>, FromOpenRpcError> {
        let root = serde_json::to_value(&self.document).unwrap_or_default();
        let names: Vec<&str> = methods.iter().map(|method| method.name.as_str()).collect();
        let names = tool_names(&names, &self.prefix, &self.renamed)?;
        let mut values = 0;
        let mut tools = Vec::with_capacity(methods.len());
        for method in methods {
            let name = names.get(method.name.as_str()).cloned().unwrap_or_default();
            tools.push(self.tool(name, method, &root, &mut values)?);
            if values > MAX_VALUES {
                return Err(FromOpenRpcError::TooLarge { limit: MAX_VALUES });
            }
        }
        Ok(tools)
    }

    fn tool(
        &self,
        name: String,
        method: &Method,
        root: &Value,
        values: &mut usize,
    ) -> Result<ServerTool, FromOpenRpcError> {
        let invalid = |place: String, reason: String| FromOpenRpcError::Schema {
            method: method.name.clone(),
            place,
            reason,
        };
        let mut schemas = Schemas::new(root);
        let input = Input::of(method, &mut schemas)
            .and_then(|input| input.with_definitions(&mut schemas))
            .map_err(|fault| invalid(fault.place, fault.reason))?;
        *values += schemas.values();
        let output = match self.has_output_schemas {
            true => Output::of(method, root)
                .map_err(|reason| invalid("the result".to_owned(), reason))?,
            false => None,
        };
        let Input { schema, params } = input;
        let mut tool = Tool::new(name, schema);
        tool.title = title(method);
        tool.description = description(method, &params);
        tool.output_schema = output.as_ref().map(|output| output.schema.clone());
        tool.annotations = self.annotations(method);
        let caller = self.caller(method, params, output);
        let handler = move |arguments, cx: RequestContext| caller.clone().run(arguments, cx);
        ServerTool::dynamic(tool, handler)
            .map_err(|source| FromOpenRpcError::Tool { method: method.name.clone(), source })
    }

    fn caller(
        &self,
        method: &Method,
        params: MethodParams,
        output: Option<Output>,
    ) -> MethodCaller {
        MethodCaller(Arc::new(MethodTarget {
            client: self.client.clone(),
            method: method.name.clone(),
            params,
            output,
            timeout: self.timeout,
            is_notification: method.result.is_none(),
        }))
    }

    fn annotations(&self, method: &Method) -> Option<ToolAnnotations> {
        let told = method.rest.get("x-read-only").and_then(Value::as_bool);
        let by_name = || {
            self.read_only.match_any(&method.name)
                || (self.guesses_read_only && read_only::is_guessed(&method.name))
        };
        told.unwrap_or_else(by_name).then(|| ToolAnnotations::new().with_read_only_hint(true))
    }
}

impl Offer {
    fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.resources.is_empty() && self.templates.is_empty()
    }
}
