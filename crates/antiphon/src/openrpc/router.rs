//! What a router says about its methods.

use antiphon_core::RawJson;
use serde_json::json;

use super::description::{Description, Generator};
use super::document::{Components, Document, Info, Method};
use crate::context::Context;
use crate::router::Router;

/// A method and what is said about it.
#[derive(Clone)]
pub(crate) struct Described {
    /// Its name, and then others that it answers to.
    pub(super) names: Vec<String>,
    description: Description,
}

impl Described {
    fn method(&self, generator: &mut Generator) -> Method {
        let (name, aliases) = match &*self.names {
            [name, aliases @ ..] => (&**name, aliases),
            [] => ("", &[][..]),
        };
        let mut method = self.description.of(name, generator);
        if !aliases.is_empty() {
            method.rest.insert("x-aliases".to_owned(), json!(aliases));
        }
        method
    }
}

impl Router {
    /// Describes a method that is a closure. A second description of one name takes the place of the
    /// first.
    #[must_use]
    pub fn describe(self, name: &str, description: Description) -> Self {
        self.described_as(vec![name.to_owned()], description)
    }

    /// The same for a method of several names.
    pub(crate) fn described_as(mut self, names: Vec<String>, description: Description) -> Self {
        self.descriptions.retain(|other| other.names.first() != names.first());
        self.descriptions.push(Described { names, description });
        self
    }

    /// Takes in descriptions of another router.
    pub(crate) fn describe_all(self, prefix: &str, descriptions: Vec<Described>) -> Self {
        descriptions.into_iter().fold(self, |router, Described { names, description }| {
            let names = names.into_iter().map(|name| format!("{prefix}{name}")).collect();
            router.described_as(names, description)
        })
    }

    /// What the service says about itself: every method that is described.
    pub fn openrpc(&self, info: Info) -> Document {
        let (methods, components) = self.described();
        Document {
            openrpc: super::VERSION.to_owned(),
            info,
            methods,
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

    /// The methods, and what they share.
    pub(super) fn described(&self) -> (Vec<Method>, Components) {
        let mut generator = Generator::new();
        let described = self.descriptions.iter();
        let methods = described.map(|it| it.method(&mut generator)).collect();
        let components = Components { schemas: generator.components(), ..Components::default() };
        (methods, components)
    }
}
