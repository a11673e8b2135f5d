//! The OpenRPC document of a service.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use antiphon::openrpc::{Description, Document, Info, ParamStructure};
use antiphon::schemars::JsonSchema;
use antiphon::{CallError, Context, Responder, Router, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::subscriptions::Clock as _;

/// A shop of many shapes.
#[antiphon::rpc(namespace = "shop", separator = ".", rename_all = "camelCase")]
pub(crate) trait Shop {
    /// Orders a thing.
    ///
    /// It is sent by *post*, to the
    /// address given.
    #[method(aliases = ["buy"])]
    async fn order_thing(
        &self,
        cx: Context,
        /// What to order.
        thing: Thing,
        #[param(default = 1)] how_many: u32,
        #[param(default)] size: Size,
        note: Option<String>,
    ) -> Result<Receipt, ShopError>;

    /// What is there.
    #[deprecated]
    #[method(idempotent)]
    async fn stock(&self, #[params] query: Query) -> Result<Vec<Thing>, ShopError>;

    async fn total(&self, #[params] prices: Vec<u32>) -> Result<u64, CallError>;

    async fn opaque(&self, what: Opaque) -> Result<Opaque, std::convert::Infallible>;

    /// Somebody came in.
    #[notification]
    async fn entered(&self, name: String);
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Thing {
    /// What it is called.
    #[schemars(length(min = 1))]
    name: String,
    part_of: Option<Box<Thing>>,
    tags: Vec<(String, u8)>,
}

#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Size {
    #[default]
    Small,
    Large {
        by: u8,
    },
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Receipt {
    things: std::collections::BTreeMap<String, Thing>,
    paid: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// What to look for.
    words: Vec<String>,
    #[serde(default)]
    limit: u32,
}

/// Without a schema.
#[derive(Serialize, Deserialize)]
pub(crate) struct Opaque(u8);

#[derive(Debug, RpcError)]
pub(crate) enum ShopError {
    #[rpc(code = -32050, message = "there is none left")]
    SoldOut,
    /// The address is unknown. Try another.
    #[rpc(code = -32051, message = "no such address")]
    Address { at: String },
}

struct Corner;

impl Shop for Corner {
    async fn order_thing(
        &self,
        _cx: Context,
        thing: Thing,
        how_many: u32,
        _size: Size,
        _note: Option<String>,
    ) -> Result<Receipt, ShopError> {
        match how_many {
            0 => Err(ShopError::SoldOut),
            1 => Err(ShopError::Address { at: thing.name }),
            _ => Ok(Receipt { things: [(thing.name.clone(), thing)].into(), paid: true }),
        }
    }

    async fn stock(&self, _query: Query) -> Result<Vec<Thing>, ShopError> {
        Ok(Vec::new())
    }

    async fn total(&self, prices: Vec<u32>) -> Result<u64, CallError> {
        Ok(prices.into_iter().map(u64::from).sum())
    }

    async fn opaque(&self, what: Opaque) -> Result<Opaque, std::convert::Infallible> {
        Ok(what)
    }

    async fn entered(&self, _name: String) {}
}

fn info() -> Info {
    Info::new("Shop", "2.1.0").description("Things.")
}

/// A contract, a contract in a namespace of another, and closures.
pub(crate) fn shop() -> Router {
    Router::new()
        .merge(Corner.into_router())
        .nest("branch.", Corner.into_router())
        .merge(crate::subscriptions::Tower.into_router())
        .method("sum", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) })
        .describe("sum", Description::method::<(i64, i64), i64>().docs("Adds."))
        .notification("hello", |_: Query, _cx: Context| async {})
        .describe("hello", Description::notification::<Query>())
        .method("undescribed", |(): (), _cx: Context| async { Ok(()) })
}

fn method(name: &str) -> Value {
    let document = serde_json::to_value(shop().openrpc(info())).unwrap();
    let methods = document["methods"].as_array().unwrap();
    methods.iter().find(|method| method["name"] == name).unwrap().clone()
}

#[test]
fn the_description_of_a_method_follows_the_contract() {
    let order = method("shop.orderThing");
    assert_eq!(order["summary"], "Orders a thing.");
    let text = "Orders a thing.\n\nIt is sent by *post*, to the\naddress given.";
    assert_eq!(order["description"], text);
    assert_eq!(order["x-aliases"], json!(["buy"]));
    let params = order["params"].as_array().unwrap();
    let named: Vec<_> = params.iter().map(|p| (&p["name"], p["required"] == true)).collect();
    assert_eq!(
        json!(named),
        json!([["thing", true], ["howMany", false], ["size", false], ["note", false]])
    );
    assert_eq!(params[0]["summary"], "What to order.");
    assert_eq!(params[0]["schema"], json!({"$ref": "#/components/schemas/Thing"}));
    assert_eq!(params[1]["schema"]["default"], 1);
    assert_eq!(params[2]["schema"]["default"], "Small");
    assert_eq!(order["result"]["schema"], json!({"$ref": "#/components/schemas/Receipt"}));
    assert_eq!(
        order["errors"],
        json!([
            {"code": -32050, "message": "there is none left"},
            {"code": -32051, "message": "no such address"},
        ])
    );
}

#[test]
fn deprecated_and_idempotent_methods_are_marked() {
    assert_eq!(method("shop.stock")["deprecated"], true);
    assert_eq!(method("shop.stock")["x-idempotent"], true);
    assert_eq!(method("shop.entered").get("result"), None);
    assert_eq!(method("shop.total")["result"]["schema"]["type"], "integer");
    assert_eq!(method("branch.shop.orderThing")["x-aliases"], json!(["branch.buy"]));
    assert_eq!(method("sum")["summary"], "Adds.");
}

#[test]
fn params_of_one_struct_are_described_by_its_fields() {
    let stock = method("shop.stock");
    assert_eq!(stock["paramStructure"], "by-name");
    assert_eq!(stock["params"][1]["name"], "words");
    assert_eq!(stock["params"][1]["required"], true);
    assert_eq!(stock["params"][1]["description"], "What to look for.");
    assert_eq!(stock["params"][0].get("required"), None);
    let total = method("shop.total");
    assert_eq!(total["paramStructure"], "by-position");
    assert_eq!(total["params"][0]["x-repeated"], true);
    assert_eq!(method("sum")["params"].as_array().unwrap().len(), 2);
}

#[test]
fn a_type_without_a_schema_accepts_any_value() {
    let opaque = method("shop.opaque");
    assert_eq!(opaque["params"][0]["schema"], true);
    assert_eq!(opaque["result"]["schema"], true);
}

#[test]
fn a_document_parses_back_unchanged() {
    let document = shop().openrpc(info());
    assert_eq!(Document::parse(&document.to_text()).unwrap(), document);
    assert!(document.components.schemas.contains_key("Thing"));
    assert!(document.method("undescribed").is_none());
}

#[test]
fn references_in_foreign_documents_are_resolved() {
    let text = json!({
        "openrpc": "1.2.6",
        "info": {"title": "t", "version": "1", "license": {"name": "MIT"}},
        "servers": [{"url": "http://localhost"}],
        "methods": [
            {"name": "a", "params": [{"$ref": "#/components/contentDescriptors/P"}],
             "result": {"$ref": "#/components/contentDescriptors/R"}, "paramStructure": "by-name"},
            {"$ref": "#/components/methods/b"},
        ],
        "components": {
            "contentDescriptors": {
                "P": {"name": "p", "schema": {"$ref": "#/components/schemas/S"}},
                "R": {"$ref": "#/components/contentDescriptors/P"},
            },
            "methods": {"b": {"name": "b", "params": []}},
            "schemas": {"S": {"type": "string"}},
        },
    });
    let document = Document::parse(&text.to_string()).unwrap();
    let a = document.method("a").unwrap();
    assert_eq!(a.params[0].schema, json!({"$ref": "#/components/schemas/S"}));
    assert_eq!(a.param_structure, ParamStructure::ByName);
    assert_eq!(a.result.as_ref().unwrap().name, "p");
    assert!(document.method("b").unwrap().result.is_none());
    assert_eq!(document.rest["servers"][0]["url"], "http://localhost");
    assert_eq!(document.info.rest["license"]["name"], "MIT");
    let lost = text.to_string().replace("contentDescriptors/R", "contentDescriptors/none");
    let error = Document::parse(&lost).unwrap_err();
    assert!(error.to_string().contains("contentDescriptors/none"), "{error}");
    let text = text
        .to_string()
        .replace("#/components/contentDescriptors/P", "#/components/contentDescriptors/R");
    Document::parse(&text).unwrap_err();
}

#[tokio::test]
async fn a_service_is_discovered() {
    let responder = Responder::new(shop().discoverable(info()));
    let answer = responder.answer(r#"{"jsonrpc":"2.0","method":"rpc.discover","id":1}"#).await;
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    assert_eq!(answer["result"], serde_json::to_value(shop().openrpc(info())).unwrap());
}

/// Another validator checks the documents against the official meta-schemas: see `interop/openrpc.mjs`.
#[test]
fn a_document_is_valid() {
    let interop = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop"));
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !node || !interop.join("node_modules/.installed").exists() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
        assert!(!ci, "node, or what the scripts need of npm, is missing: run interop/setup");
        let _ = writeln!(std::io::stderr(), "not tested, node is missing: run interop/setup");
        return;
    }
    let mut check = Command::new("node")
        .arg(interop.join("openrpc.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let document = shop().openrpc(info()).to_text();
    check.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let ended = check.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.matches("ok ").count() >= 6, "{said}\n{document}");
}
