//! The description of one method, kept until a document is generated.

use std::fmt;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::document::{Content, Failure, Method, ParamStructure};
use super::expand_params::expand;
use super::method_or_topic::MethodOrTopic;
use super::subscription_methods;
use crate::error::KnownError;

/// Collects the schemas of a document.
pub struct Generator(SchemaGenerator);

impl Generator {
    /// OpenRPC uses JSON Schema draft 7, and keeps shared schemas in its components.
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft07().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.into_generator())
    }

    /// The schema of a type, or a reference to it.
    pub fn schema<T: JsonSchema>(&mut self) -> Value {
        self.transformed(SchemaGenerator::subschema_for::<T>)
    }

    /// The schema of a type, never a reference to it.
    pub(crate) fn inline<T: JsonSchema>(&mut self) -> Value {
        self.transformed(T::json_schema)
    }

    fn transformed(
        &mut self,
        make: impl FnOnce(&mut SchemaGenerator) -> schemars::Schema,
    ) -> Value {
        let mut schema = make(&mut self.0);
        for transform in self.0.transforms_mut() {
            transform.transform(&mut schema);
        }
        schema.into()
    }

    /// The schemas that are referenced.
    pub(crate) fn components(mut self) -> Map<String, Value> {
        self.0.take_definitions(true)
    }
}

/// A method, and the schema of all its params if one type takes them all.
pub(crate) type MethodAndSchema = (Method, Option<Value>);

/// A method or a subscription, with its description.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) called: MethodOrTopic,
    pub(crate) description: Description,
}

impl Described {
    pub(crate) fn new(called: MethodOrTopic, description: Description) -> Self {
        Self { called, description }
    }

    pub(crate) fn method(&self, generator: &mut Generator) -> MethodAndSchema {
        let (mut method, whole) = self.description.of(self.called.name(), generator);
        let aliases = self.called.aliases();
        if !aliases.is_empty() {
            method.rest.insert("x-aliases".to_owned(), json!(aliases));
        }
        if let Some(topic) = self.called.topic() {
            subscription_methods::name(&mut method, topic);
        }
        (method, whole)
    }
}

/// The description of a method that a closure serves. A contract trait describes itself.
///
/// ```
/// use antiphon::openrpc::{Description, Info};
/// use antiphon::{Context, Router, schemars::{self, JsonSchema}};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Subtract { minuend: i64, subtrahend: i64 }
///
/// let router = Router::new()
///     .method("subtract", |p: Subtract, _cx: Context| async move { Ok(p.minuend - p.subtrahend) })
///     .describe("subtract", Description::method::<Subtract, i64>().docs("Subtracts."));
/// assert_eq!(router.openrpc(Info::new("Math", "1.0.0")).methods[0].params[0].name, "minuend");
/// ```
#[derive(Clone)]
pub struct Description {
    make: Arc<dyn Fn(&mut Generator) -> MethodAndSchema + Send + Sync>,
    /// In the order in which they apply.
    changes: Vec<Change>,
    docs: &'static str,
}

type Change = Arc<dyn Fn(&mut Method) + Send + Sync>;

impl Description {
    /// Describes a method with params `P` and result `R`.
    pub fn method<P: JsonSchema + 'static, R: JsonSchema + 'static>() -> Self {
        Self::new(|generator| {
            let result = Some(Content::new("result", generator.schema::<R>()));
            let (method, whole) = with_params::<P>(generator);
            (Method { result, ..method }, whole)
        })
    }

    /// Describes a notification with params `P`.
    pub fn notification<P: JsonSchema + 'static>() -> Self {
        Self::new(with_params::<P>)
    }

    /// Describes a subscription with params `P` and items `T`.
    pub fn subscription<P: JsonSchema + 'static, T: JsonSchema + 'static>() -> Self {
        Self::new(|generator| {
            let (method, whole) = with_params::<P>(generator);
            (items(method, &generator.schema::<T>()), whole)
        })
    }

    /// Sets the documentation. The first paragraph is the summary. If there are more paragraphs, the whole
    /// text is the description; a single paragraph gives no description.
    #[must_use]
    pub fn docs(mut self, text: &'static str) -> Self {
        self.docs = text;
        self
    }

    /// Sets the order of the params of a struct, so that they can also be given by position. A schema
    /// does not keep the order of fields.
    ///
    /// ```
    /// use antiphon::openrpc::{Description, Info, ParamStructure};
    /// use antiphon::{Context, Router, schemars::{self, JsonSchema}};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Move { to: String, by: u8 }
    ///
    /// let described = Description::method::<Move, bool>().in_order(["to", "by"]);
    /// let router = Router::new()
    ///     .method("move", |_: Move, _cx: Context| async { Ok(true) })
    ///     .describe("move", described);
    /// let document = router.openrpc(Info::new("Board", "1.0.0"));
    /// assert_eq!(document.methods[0].params[0].name, "to");
    /// assert_eq!(document.methods[0].param_structure, ParamStructure::Either);
    /// ```
    #[must_use]
    pub fn in_order<const N: usize>(self, names: [&'static str; N]) -> Self {
        self.with(move |method| {
            let place = |param: &Content| names.iter().position(|name| *name == param.name);
            method.params.sort_by_key(|param| place(param).unwrap_or(N));
            method.param_structure = ParamStructure::Either;
        })
    }

    /// Changes the described method, for example its errors, its examples, or whether it is deprecated.
    ///
    /// ```
    /// use antiphon::openrpc::{Description, Failure};
    ///
    /// let description = Description::method::<(), u8>().with(|method| {
    ///     method.deprecated = true;
    ///     method.errors.push(Failure::new(-32050, "out of stock"));
    /// });
    /// # drop(description);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut Method) + Send + Sync + 'static) -> Self {
        self.changes.push(Arc::new(change));
        self
    }

    pub(crate) fn new(
        make: impl Fn(&mut Generator) -> MethodAndSchema + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), changes: Vec::new(), docs: "" }
    }

    pub(crate) fn of(&self, name: &str, generator: &mut Generator) -> MethodAndSchema {
        let (summary, description) = split_docs(self.docs);
        let (made, whole) = (self.make)(generator);
        let mut method = Method { name: name.to_owned(), summary, description, ..made };
        self.changes.iter().for_each(|change| change(&mut method));
        (method, whole)
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Description").field("docs", &self.docs).finish_non_exhaustive()
    }
}

fn with_params<P: JsonSchema>(generator: &mut Generator) -> MethodAndSchema {
    let schema = generator.inline::<P>();
    let (params, param_structure) = expand_all_params("params", &schema);
    (Method { params, param_structure, ..Method::default() }, Some(schema))
}

/// Adds the schema of the items of a subscription.
pub(crate) fn items(mut method: Method, schema: &Value) -> Method {
    method.rest.insert(subscription_methods::MEMBER.to_owned(), json!({"schema": schema}));
    method
}

/// Expands the schema of an argument that takes all params.
pub(crate) fn expand_all_params(name: &str, schema: &Value) -> (Vec<Content>, ParamStructure) {
    expand(name, schema)
}

/// The summary and the description of a doc comment. A single paragraph is only a summary.
pub(crate) fn split_docs(docs: &str) -> (Option<String>, Option<String>) {
    let docs = docs.trim();
    let summary = docs.split("\n\n").next().unwrap_or_default();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let description = if summary.len() < docs.len() { docs } else { "" };
    (some(summary.replace('\n', " ")), some(description.to_owned()))
}

impl From<KnownError> for Failure {
    fn from(error: KnownError) -> Self {
        Self::new(error.code.0, error.message)
    }
}
