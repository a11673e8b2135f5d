//! Arguments and results of unusual types.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU8;

use antiphon_mcp::Structured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::requests::TestClient;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Page {
    #[serde(default)]
    from: u32,
    limit: Option<NonZeroU8>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Metric,
    Imperial,
}

#[derive(Serialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

struct Unusual<const N: usize>;

#[antiphon_mcp::server(name = "unusual", version = "1")]
impl<const N: usize> Unusual<N> {
    /// Lists *things*.
    ///
    /// ```json
    /// { "from": 1 }
    /// ```
    ///
    /// - one
    ///   - two
    #[tool]
    fn flat(&self, #[serde(flatten)] page: Page, word: Cow<'static, str>) -> String {
        format!("{} {word} {N}", json!(page))
    }

    #[tool]
    fn many(
        &self,
        shapes: Vec<Shape>,
        names: HashMap<String, Vec<u8>>,
        point: [f64; 2],
        pair: (u8, String),
        any: Value,
        boxed: Box<Option<u8>>,
    ) -> String {
        json!([shapes, names, point, pair, any, boxed]).to_string()
    }

    #[tool]
    fn units(
        &self,
        #[param(default)] one: Unit,
        #[param(default = Unit::Imperial)] other: Unit,
    ) -> String {
        format!("{one:?} {other:?}")
    }

    #[tool]
    fn tree(&self) -> Structured<Tree> {
        let leaf = Tree { name: "leaf".to_owned(), children: Vec::new() };
        Structured(Tree { name: "root".to_owned(), children: vec![leaf] })
    }

    #[tool]
    fn map(&self) -> Structured<BTreeMap<&'static str, u64>> {
        Structured(BTreeMap::from([("big", u64::MAX)]))
    }

    #[cfg(any())]
    #[tool]
    fn absent(&self, missing: Missing) {}

    #[tool]
    #[cfg(test)]
    #[doc = concat!("Pre", "sent.")]
    /// And *more*.
    fn present(&self, #[allow(unused_variables)] number: i128, text: Option<String>) -> bool {
        text.is_some()
    }
}

#[tokio::test]
async fn unusual_arguments_are_described_and_read() {
    let client = TestClient::of(Unusual::<3>);
    let flat = client.tool("flat").await;
    let text = "Lists *things*.\n\n```json\n{ \"from\": 1 }\n```\n\n- one\n  - two";
    assert_eq!(flat["description"], text);
    assert_eq!(flat["inputSchema"]["required"], json!(["word"]));
    assert_eq!(flat["inputSchema"]["properties"]["limit"]["maximum"], 255);
    for (arguments, expected) in [
        (json!({ "from": 2, "word": "x" }), r#"{"from":2,"limit":null} x 3"#),
        (json!({ "limit": null, "word": "x" }), r#"{"from":0,"limit":null} x 3"#),
    ] {
        assert_eq!(client.text("flat", arguments).await, expected);
    }
    let many = json!({
        "shapes": [{ "kind": "circle", "radius": 1.0 }], "names": { "a": [1] }, "point": [1.0, 2.5],
        "pair": [1, "x"], "any": { "b": null }, "boxed": null,
    });
    let expected = ["shapes", "names", "point", "pair", "any", "boxed"];
    let expected = Value::from(expected.map(|name| many[name].clone()).to_vec());
    assert_eq!(client.text("many", many).await, expected.to_string());
    assert_eq!(client.text("units", json!({})).await, "Metric Imperial");
    let units = client.tool("units").await["inputSchema"]["properties"].clone();
    assert_eq!(
        (&units["one"]["default"], &units["other"]["default"]),
        (&json!("metric"), &json!("imperial"))
    );
    assert_eq!(client.tool("present").await["description"], "Present.\nAnd *more*.");
    assert_eq!(client.text("present", json!({ "number": 1, "text": null })).await, "false");
}

#[tokio::test]
async fn a_fault_in_an_unusual_argument_says_what_is_missing() {
    let client = TestClient::of(Unusual::<3>);
    let many = |shape: Value| {
        json!({
            "shapes": [{ "kind": "square", "side": 1 }, shape], "names": {}, "point": [1, 2],
            "pair": [1, "x"], "any": 1, "boxed": 1,
        })
    };
    for (shape, expected) in [
        (json!({ "kind": "circle" }), "invalid argument `shapes[1]`: missing field `radius`"),
        (
            json!({ "kind": "star" }),
            "invalid argument `shapes[1].kind`: unknown variant `star`, expected `circle` or `square`",
        ),
    ] {
        assert_eq!(client.failure("many", many(shape)).await, expected);
    }
    let fault = client.failure("flat", json!({ "word": "x", "limit": 0 })).await;
    assert!(fault.starts_with("invalid argument"), "{fault}");
    // serde_json does not know the place of this fault.
    let fault = client.failure("present", json!({ "number": 1.5 })).await;
    assert!(fault.starts_with("invalid arguments: "), "{fault}");
}

#[tokio::test]
async fn structured_results_can_contain_themselves() {
    let client = TestClient::of(Unusual::<3>);
    let schema = client.tool("tree").await["outputSchema"].clone();
    assert_eq!(schema["properties"]["children"]["items"], json!({ "$ref": "#" }));
    let tree = client.call("tree", json!({})).await["structuredContent"].clone();
    assert_eq!(tree["children"][0]["name"], "leaf");
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&tree));
    let map = client.call("map", json!({})).await;
    assert_eq!(map["structuredContent"]["big"], u64::MAX);
}
