//! What a router says about its methods.

use antiphon_core::RawJson;

use super::Router;
use crate::context::Context;
use crate::openrpc::{
    Called, Components, Described, Description, Document, Generator, Info, Said, VERSION, gathered,
};

impl Router {
    /// Describes a method, or a [`Topic`](crate::Topic), that a closure serves. A second description of
    /// one thing takes the place of the first.
    #[must_use]
    pub fn describe(self, called: impl Into<Called>, description: Description) -> Self {
        self.add_description(Described::new(called.into(), description))
    }

    pub(crate) fn add_description(mut self, described: Described) -> Self {
        self.descriptions.retain(|other| !other.called.is(&described.called));
        self.descriptions.push(described);
        self
    }

    /// Takes in descriptions of another router.
    pub(crate) fn describe_all(self, prefix: &str, descriptions: Vec<Described>) -> Self {
        descriptions.into_iter().fold(self, |router, Described { called, description }| {
            router.add_description(Described::new(called.prefixed(prefix), description))
        })
    }

    /// What the service says about itself: every method that is described.
    pub fn openrpc(&self, info: Info) -> Document {
        let (said, components) = self.described();
        let methods = said.into_iter().map(|(method, _)| method).collect();
        Document {
            openrpc: VERSION.to_owned(),
            info,
            methods: gathered(methods),
            components,
            rest: serde_json::Map::new(),
        }
    }

    /// Serves the description of every method that is there by now, as `rpc.discover`.
    ///
    /// # Panics
    /// When there is a `rpc.discover` already.
    #[must_use]
    pub fn discoverable(self, info: Info) -> Self {
        let document = RawJson::encode(&self.openrpc(info)).unwrap_or(RawJson::NULL);
        self.method("rpc.discover", move |(): (), _cx: Context| {
            let document = document.clone();
            async move { Ok(document) }
        })
    }

    /// What is said about each, and what they share.
    pub(super) fn described(&self) -> (Vec<Said>, Components) {
        let mut generator = Generator::new();
        let described = self.descriptions.iter();
        let said = described.map(|it| it.method(&mut generator)).collect();
        let components = Components { schemas: generator.components(), ..Components::default() };
        (said, components)
    }
}
