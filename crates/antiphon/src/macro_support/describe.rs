//! Builds the description of a method of a contract.

use serde_json::{Value, json};

use crate::error::KnownError;
use crate::openrpc::{
    Content, Description, Failure, Generator, Method, MethodOrTopic, expand_all_params, items,
    split_docs,
};
use crate::router::Router;

/// The description of one method while it is built.
pub struct MethodDescriber<'a> {
    generator: &'a mut Generator,
    method: Method,
    /// The schema of the argument that takes all params.
    whole: Option<Value>,
}

/// Adds the description of a method or a subscription.
pub fn described(
    router: Router,
    called: impl Into<MethodOrTopic>,
    docs: &'static str,
    describe: fn(&mut MethodDescriber<'_>),
) -> Router {
    let description = Description::new(move |generator| {
        let mut describing = MethodDescriber { generator, method: Method::default(), whole: None };
        describe(&mut describing);
        (describing.method, describing.whole)
    });
    router.describe(called, description.docs(docs))
}

impl MethodDescriber<'_> {
    /// The generator of schemas.
    pub fn generator(&mut self) -> &mut Generator {
        self.generator
    }

    /// Adds a param.
    ///
    /// It is optional if its type is optional or if it has a default, even one that does not serialize.
    pub fn param(
        &mut self,
        name: &str,
        docs: &str,
        schema: Value,
        is_optional: bool,
        default: Option<Option<Value>>,
    ) {
        let (summary, description) = split_docs(docs);
        let mut param = Content::new(name, schema);
        (param.summary, param.description) = (summary, description);
        param.required = default.is_none() && !is_optional;
        if let Some(Some(default)) = default {
            param.schema = with_default(param.schema, default);
        }
        self.method.params.push(param);
    }

    /// Adds an argument that takes all params.
    pub fn whole(&mut self, name: &str, schema: &Value) {
        (self.method.params, self.method.param_structure) = expand_all_params(name, schema);
        self.whole = Some(schema.clone());
    }

    /// Sets the result; a notification has none.
    pub fn result(&mut self, schema: Value) {
        let mut result = Content::new("result", schema);
        result.required = true;
        self.method.result = Some(result);
    }

    /// Sets the schema of the items of a subscription.
    pub fn items(&mut self, schema: &Value) {
        self.method = items(std::mem::take(&mut self.method), schema);
    }

    /// Sets the errors that the method can return.
    pub fn errors(&mut self, errors: Vec<KnownError>) {
        self.method.errors = errors.into_iter().map(Failure::from).collect();
    }

    /// Marks the method as deprecated.
    pub fn deprecated(&mut self) {
        self.method.deprecated = true;
    }

    /// Marks the method as idempotent.
    pub fn idempotent(&mut self) {
        self.method.rest.insert("x-idempotent".to_owned(), json!(true));
    }
}

/// Adds a default to a schema. A reference is wrapped, because draft 7 ignores all keywords next to it.
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
