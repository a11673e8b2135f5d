//! Services whose names are those of the generated code, of keywords, or of the prelude.

use serde_json::json;

use crate::requests::TestClient;

struct Names;

/// A function with the name of a variable in the generated code.
fn builder() -> u32 {
    3
}

const SERVICE: &str = "names";

#[antiphon_mcp::server(name = SERVICE, version = format!("{}", builder()))]
impl Names {
    #[tool]
    fn r#type(&self, r#match: u32, #[param(default = builder())] service: u32) -> u32 {
        10 * r#match + service
    }

    #[tool]
    #[allow(clippy::too_many_arguments)]
    fn variables(
        &self,
        cx: u32,
        arguments: u32,
        service: u32,
        builder: u32,
        entry: u32,
        handler: u32,
        returned: u32,
        completer: u32,
    ) -> u32 {
        let all = [cx, arguments, service, builder, entry, handler, returned, completer];
        all.iter().fold(0, |sum, digit| 10 * sum + digit)
    }

    #[tool]
    fn builder(&self) -> u32 {
        4
    }

    #[tool]
    #[allow(clippy::wrong_self_convention)]
    fn into_server(&self) -> u32 {
        5
    }

    #[tool]
    fn add_to(&self) -> u32 {
        6
    }

    #[tool(name = "laenge")]
    fn länge(&self, größe: u32) -> u32 {
        größe
    }

    #[complete(prompt = "loop", argument = "for")]
    fn completer(&self, known: &str) -> Vec<String> {
        vec![known.to_owned()]
    }

    #[prompt]
    fn r#loop(&self, r#for: String) -> String {
        r#for
    }
}

#[tokio::test]
async fn names_of_the_generated_code_are_free() {
    let client = TestClient::of(Names);
    assert_eq!(client.text("type", json!({ "match": 1 })).await, "13");
    let digits = json!({
        "cx": 1, "arguments": 2, "service": 3, "builder": 4, "entry": 5, "handler": 6, "returned": 7,
        "completer": 8,
    });
    assert_eq!(client.text("variables", digits).await, "12345678");
    assert_eq!(client.text("builder", json!({})).await, "4");
    assert_eq!(client.text("laenge", json!({ "größe": 2 })).await, "2");
    let prompt = client.listed("prompts/list", "prompts", "loop").await;
    assert_eq!(prompt["arguments"][0]["name"], "for");
}

/// Types of the user, with the names of the library and of the prelude.
#[allow(dead_code)]
mod own {
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct RequestContext(pub(super) u32);
    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Result(pub(super) u32);

    impl antiphon_mcp::IntoToolResult for Result {
        fn into_tool_result(
            self,
        ) -> std::result::Result<antiphon_mcp::ToolOutput, antiphon_mcp::ToolError> {
            antiphon_mcp::IntoToolResult::into_tool_result(self.0)
        }
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Option(pub(super) u32);
    #[derive(Deserialize, JsonSchema)]
    pub(super) struct String(pub(super) u32);
    #[derive(Default)]
    pub(super) struct Arc;
    pub(super) struct Box;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Returned;
    pub(super) struct ServerTool;
    pub(super) trait Send {}
    pub(super) trait Sync {}
    pub(super) trait Sized {}
    pub(super) trait Clone {}
    pub(super) trait Default {}
    pub(super) trait Into {}
    pub(super) trait Fn {}
}

/// No name of the prelude, and other types under these names.
#[no_implicit_prelude]
#[deny(warnings, unused, clippy::all, clippy::pedantic, clippy::nursery)]
mod shadowed {
    #[allow(unused_imports)]
    use super::own::*;

    pub(super) struct Shadowed;

    #[::antiphon_mcp::server(name = "shadowed", version = "1")]
    impl Shadowed {
        #[tool(read_only, task = "optional")]
        #[allow(clippy::unused_self)]
        const fn own(
            &self,
            #[param] context: RequestContext,
            string: String,
            option: Option,
            #[param(default = 5)] number: u32,
            #[serde(default)] other: u32,
        ) -> Result {
            Result(context.0 + string.0 + option.0 + number + other)
        }

        #[tool]
        #[allow(clippy::unused_async)]
        async fn fails(
            cx: &::antiphon_mcp::RequestContext,
            text: ::std::option::Option<::std::string::String>,
        ) -> ::std::result::Result<bool, ::std::fmt::Error> {
            let _ = (cx.logs(::antiphon_mcp::types::LoggingLevel::Debug), text);
            ::std::result::Result::Err(::std::fmt::Error)
        }

        #[resource(template = "own://{string}")]
        #[allow(clippy::missing_const_for_fn)]
        fn template(string: ::std::string::String) -> ::std::string::String {
            string
        }

        #[prompt]
        const fn prompt() -> &'static ::core::primitive::str {
            "text"
        }
    }
}

#[tokio::test]
async fn a_service_needs_no_prelude() {
    let client = TestClient::of(shadowed::Shadowed);
    let own = json!({ "context": 1, "string": 2, "option": 3, "other": 4 });
    assert_eq!(client.text("own", own).await, "15");
    let failure = client.failure("fails", json!({})).await;
    assert_eq!(failure, "an error occurred when formatting an argument");
}

#[tokio::test]
async fn a_service_can_be_inside_a_function() {
    struct Local;

    #[antiphon_mcp::server(name = "local", version = "1")]
    impl Local {
        #[tool]
        fn one(&self, by: Inner) -> u32 {
            by.0
        }
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Inner(u32);

    assert_eq!(TestClient::of(Local).text("one", json!({ "by": 3 })).await, "3");
}

macro_rules! service {
    ($name:ident, $argument:ident: $ty:ty = $default:expr, $context:ty, $result:ty) => {
        struct $name;

        #[antiphon_mcp::server(name = "declared", version = "1")]
        impl $name {
            #[tool]
            fn tool(
                &self,
                cx: $context,
                $argument: $ty,
                #[param(default = $default)] two: u32,
            ) -> $result {
                let _ = cx;
                Ok($argument.unwrap_or(9) + two)
            }
        }
    };
}

service!(Declared, one: Option<u32> = 1 + 1, antiphon_mcp::RequestContext, Result<u32, antiphon_mcp::ToolError>);

#[tokio::test]
async fn a_macro_can_declare_a_service() {
    let client = TestClient::of(Declared);
    assert_eq!(client.text("tool", json!({})).await, "11");
    assert_eq!(client.text("tool", json!({ "one": 1, "two": 1 })).await, "2");
}
