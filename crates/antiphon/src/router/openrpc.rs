//! The OpenRPC document of a router.

use antiphon_core::RawJson;

use super::Router;
use crate::context::Context;
use crate::openrpc::{
    Components, Described, Description, Document, Generator, Info, MethodAndSchema, MethodOrTopic,
    VERSION, merge_methods,
};

impl Router {
    /// Describes a method or a [`Topic`](crate::Topic) that a closure serves. A second description of
    /// the same method or topic replaces the first.
    #[must_use]
    pub fn describe(self, called: impl Into<MethodOrTopic>, description: Description) -> Self {
        self.add_description(Described::new(called.into(), description))
    }

    pub(crate) fn add_description(mut self, described: Described) -> Self {
        self.descriptions.retain(|other| !other.called.is_same(&described.called));
        self.descriptions.push(described);
        self
    }

    /// Adds the descriptions of another router.
    pub(crate) fn describe_all(self, prefix: &str, descriptions: Vec<Described>) -> Self {
        descriptions.into_iter().fold(self, |router, Described { called, description }| {
            router.add_description(Described::new(called.prefixed(prefix), description))
        })
    }

    /// Returns the OpenRPC document of the service. It contains every description, even one whose method is
    /// not registered, and no method without a description.
    pub fn openrpc(&self, info: Info) -> Document {
        let (said, components) = self.described();
        let methods = said.into_iter().map(|(method, _)| method).collect();
        Document {
            openrpc: VERSION.to_owned(),
            info,
            methods: merge_methods(methods),
            components,
            rest: serde_json::Map::new(),
        }
    }

    /// Serves the OpenRPC document of the methods described so far as `rpc.discover`. Call it last. See
    /// [`openrpc`](Self::openrpc) for its content.
    ///
    /// # Panics
    /// Panics if `rpc.discover` is already registered.
    #[must_use]
    pub fn discoverable(self, info: Info) -> Self {
        let document = RawJson::encode(&self.openrpc(info)).unwrap_or(RawJson::NULL);
        self.method("rpc.discover", move |(): (), _cx: Context| {
            let document = document.clone();
            async move { Ok(document) }
        })
    }

    /// The described methods, and the schemas that they share.
    pub(super) fn described(&self) -> (Vec<MethodAndSchema>, Components) {
        let mut generator = Generator::new();
        let described = self.descriptions.iter();
        let said = described.map(|it| it.method(&mut generator)).collect();
        let components = Components { schemas: generator.components(), ..Components::default() };
        (said, components)
    }
}
