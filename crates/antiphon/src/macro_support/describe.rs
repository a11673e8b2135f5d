//! What a contract says about a method, where somebody may ask.

use serde_json::{Value, json};

use crate::error::KnownError;
use crate::openrpc::{
    Content, Description, Failure, Generator, Method, MethodOrTopic, items, told, whole,
};
use crate::router::Router;

/// One method while it is described.
pub struct Describing<'a> {
    generator: &'a mut Generator,
    method: Method,
    /// The schema of the argument that is all the params.
    whole: Option<Value>,
}

/// Adds what is said about a method, or about a subscription.
pub fn described(
    router: Router,
    called: impl Into<MethodOrTopic>,
    docs: &'static str,
    describe: fn(&mut Describing<'_>),
) -> Router {
    let description = Description::new(move |generator| {
        let mut describing = Describing { generator, method: Method::default(), whole: None };
        describe(&mut describing);
        (describing.method, describing.whole)
    });
    router.describe(called, description.docs(docs))
}

impl Describing<'_> {
    /// Where schemas are made.
    pub fn generator(&mut self) -> &mut Generator {
        self.generator
    }

    /// A param.
    ///
    /// It is optional where its type is, or where there is a default, which may be one that cannot be
    /// shown.
    pub fn param(
        &mut self,
        name: &str,
        docs: &str,
        schema: Value,
        is_optional: bool,
        default: Option<Option<Value>>,
    ) {
        let (summary, description) = told(docs);
        let mut param = Content::new(name, schema);
        (param.summary, param.description) = (summary, description);
        param.required = default.is_none() && !is_optional;
        if let Some(Some(default)) = default {
            param.schema = with_default(param.schema, default);
        }
        self.method.params.push(param);
    }

    /// An argument that is all the params.
    pub fn whole(&mut self, name: &str, schema: &Value) {
        (self.method.params, self.method.param_structure) = whole(name, schema);
        self.whole = Some(schema.clone());
    }

    /// What is given back; without it, it is a notification.
    pub fn result(&mut self, schema: Value) {
        let mut result = Content::new("result", schema);
        result.required = true;
        self.method.result = Some(result);
    }

    /// What the items of a subscription look like.
    pub fn items(&mut self, schema: &Value) {
        self.method = items(std::mem::take(&mut self.method), schema);
    }

    /// How it may fail.
    pub fn errors(&mut self, errors: Vec<KnownError>) {
        self.method.errors = errors.into_iter().map(Failure::from).collect();
    }

    /// It is on its way out.
    pub fn deprecated(&mut self) {
        self.method.deprecated = true;
    }

    /// It may be called again.
    pub fn idempotent(&mut self) {
        self.method.rest.insert("x-idempotent".to_owned(), json!(true));
    }
}

/// A schema with the value that stands for an absent one. What stands beside a reference does not
/// count in draft 7, so it goes around it.
fn with_default(schema: Value, default: Value) -> Value {
    match schema {
        Value::Object(mut members) if !members.contains_key("$ref") => {
            members.insert("default".to_owned(), default);
            Value::Object(members)
        }
        Value::Bool(true) => json!({"default": default}),
        other => json!({"allOf": [other], "default": default}),
    }
}
