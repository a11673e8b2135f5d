//! Validation of params against their schemas.

use antiphon::openrpc::{Description, Document, Info, InvalidCallError};
use antiphon::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use antiphon::{Context, Params, RawJson, Responder, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[antiphon::rpc]
pub(crate) trait Form {
    #[method(aliases = ["file"])]
    async fn fill(
        &self,
        person: Person,
        #[param(default = 1)] copies: Copies,
        note: Option<String>,
    ) -> Result<u8, std::convert::Infallible>;

    async fn sign(&self, #[params] names: Vec<Name>) -> Result<u8, std::convert::Infallible>;
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Person {
    names: Vec<Name>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Name(#[schemars(regex(pattern = "^[A-Z][a-z]+$"))] String);

type Copies = u8;

struct Office;

impl Form for Office {
    async fn fill(
        &self,
        _person: Person,
        copies: u8,
        _note: Option<String>,
    ) -> Result<u8, std::convert::Infallible> {
        Ok(copies)
    }

    async fn sign(&self, names: Vec<Name>) -> Result<u8, std::convert::Infallible> {
        Ok(u8::try_from(names.len()).unwrap())
    }
}

async fn answer(router: Router, method: &str, params: &Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = Responder::new(router).answer(request.to_string()).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn checked() -> Router {
    Office.into_router().check_params().unwrap()
}

#[tokio::test]
async fn a_schema_violation_is_refused_with_its_path() {
    let bad = json!({"names": ["Ada", "lovelace"]});
    for (method, params, path) in [
        ("fill", json!([bad]), "[0].names[1]"),
        ("fill", json!({"person": bad}), "person.names[1]"),
        ("file", json!({"person": bad}), "person.names[1]"),
        ("sign", json!(["Ada", "lovelace"]), "[1]"),
    ] {
        // Only the check refuses it: the types accept it.
        assert!(answer(Office.into_router(), method, &params).await["result"].is_u64());
        let error = &answer(checked(), method, &params).await["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["data"]["path"], path, "{method} {params}");
        let reason = error["data"]["reason"].as_str().unwrap();
        assert!(reason.contains("[A-Z]") && !reason.contains("lovelace"), "{reason}");
    }
}

#[tokio::test]
async fn valid_and_absent_params_pass() {
    let good = json!({"names": ["Ada"]});
    for (params, copies) in [
        (json!([good]), 1),
        (json!([good, 3]), 3),
        (json!([good, null, null]), 1),
        (json!({"person": good, "copies": null, "note": null}), 1),
        (json!({"person": good, "note": "n", "copies": 2}), 2),
    ] {
        assert_eq!(answer(checked(), "fill", &params).await["result"], copies, "{params}");
    }
    assert_eq!(answer(checked(), "sign", &json!([])).await["result"], 0);
}

#[tokio::test]
async fn errors_outside_of_schemas_stay_the_same() {
    for params in [json!([]), json!({"persona": 1}), json!([{"names": []}, 1, null, 4])] {
        let unchecked = answer(Office.into_router(), "fill", &params).await;
        assert!(unchecked["error"]["code"] == -32602);
        assert_eq!(answer(checked(), "fill", &params).await, unchecked);
    }
}

#[tokio::test]
async fn each_kind_of_a_subscription_is_checked_by_its_own_schema() {
    use antiphon::Topic;
    use futures_util::stream;

    let router = || {
        let topics = ["people", "things"].map(Topic::ethereum);
        let [people, things] = topics.clone();
        let router = Router::new()
            .subscription(people, |_: (String,), _cx: Context| async { Ok(stream::iter([1])) })
            .subscription(things, |_: (String,), _cx: Context| async { Ok(stream::iter([1])) });
        let [people, things] = topics;
        router
            .describe(people, Description::subscription::<(Name,), u8>())
            .describe(things, Description::subscription::<(String,), u8>())
            .check_params()
            .unwrap()
    };
    let refused = answer(router(), "eth_subscribe", &json!(["people", "lovelace"])).await;
    assert_eq!(refused["error"]["data"]["path"], "[0]", "{refused}");
    for params in [json!(["things", "lovelace"]), json!(["people", "Ada"])] {
        // A `Responder` has no connection for items.
        let passed = answer(router(), "eth_subscribe", &params).await;
        assert_eq!(passed["error"]["code"], -32603, "{passed}");
    }
}

/// The order of its fields is not alphabetical.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Page {
    #[schemars(range(max = 1000))]
    #[serde(default)]
    offset: u32,
    #[schemars(range(max = 100))]
    #[serde(default)]
    limit: u32,
}

#[antiphon::rpc]
pub(crate) trait Book {
    async fn turn(&self, #[params] page: Page) -> Result<u32, std::convert::Infallible>;
}

struct Novel;

impl Book for Novel {
    async fn turn(&self, page: Page) -> Result<u32, std::convert::Infallible> {
        Ok(page.limit)
    }
}

/// Routers with a method that takes `P`: one for the unchecked run, one for the checked run.
fn taking<P>() -> [Router; 2]
where
    P: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    [(), ()].map(|()| {
        Router::new()
            .method("take", |_: P, _cx: Context| async { Ok(1) })
            .describe("take", Description::method::<P, u8>())
    })
}

/// Asserts that the types accept what the check refuses, and returns the reason.
async fn refused([unchecked, checked]: [Router; 2], method: &str, params: &Value) -> Value {
    let passed = answer(unchecked, method, params).await;
    assert!(passed["result"].is_u64(), "{params} {passed}");
    let error = answer(checked.check_params().unwrap(), method, params).await["error"].clone();
    assert_eq!(error["code"], -32602, "{params} {error}");
    error["data"].clone()
}

#[tokio::test]
async fn params_by_position_cannot_bypass_the_schema_of_a_struct() {
    let reason = "give the params by name: their order is not described";
    for params in [json!([10, 500]), json!([10, 50])] {
        let routers = || [Novel.into_router(), Novel.into_router()];
        let said = refused(routers(), "turn", &params).await;
        assert_eq!(said, json!({"path": "", "reason": reason}));
        assert_eq!(refused(taking::<Page>(), "take", &params).await, said);
        assert_eq!(refused(taking::<Option<Page>>(), "take", &params).await, said);
        assert_eq!(refused(taking::<Either>(), "take", &params).await, said);
    }
    let checked = || Novel.into_router().check_params().unwrap();
    assert_eq!(answer(checked(), "turn", &json!({"offset": 500, "limit": 10})).await["result"], 10);
    // An empty Array has no params by position.
    assert_eq!(answer(checked(), "turn", &json!([])).await["result"], 0);
}

/// Reads the first variant that fits.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "they are only read")]
enum Either {
    Page(Page),
    Numbers(Vec<u32>),
}

#[derive(Deserialize, JsonSchema)]
struct Small(
    #[schemars(range(max = 9))]
    #[expect(dead_code, reason = "it is only read")]
    u32,
);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Renamed {
    #[schemars(range(max = 9))]
    #[serde(default, alias = "count")]
    #[expect(dead_code, reason = "it is only read")]
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct Listed(
    #[schemars(length(min = 1))]
    #[expect(dead_code, reason = "it is only read")]
    Vec<u8>,
);

#[tokio::test]
async fn a_schema_of_any_shape_is_checked_as_a_whole() {
    let limit = json!({"offset": 1, "limit": 500});
    assert_eq!(refused(taking::<Option<Page>>(), "take", &limit).await["path"], "");
    assert_eq!(refused(taking::<Either>(), "take", &limit).await["path"], "");
    let counts = json!({"a": 1, "b": 10});
    let map = taking::<std::collections::HashMap<String, Small>>();
    assert_eq!(refused(map, "take", &counts).await["path"], "b");
    let numbers = json!([1, 10]);
    assert_eq!(refused(taking::<Option<Vec<Small>>>(), "take", &numbers).await["path"], "[1]");
    assert_eq!(refused(taking::<(Small, Small)>(), "take", &numbers).await["path"], "[1]");
    let by_alias = json!({"count": 10});
    assert_eq!(refused(taking::<Renamed>(), "take", &by_alias).await["path"], "");
    assert_eq!(refused(taking::<Listed>(), "take", &json!([])).await["path"], "");
}

#[tokio::test]
async fn empty_params_pass_as_array_and_object() {
    for params in [json!([]), json!({})] {
        for [_, router] in [taking::<()>(), taking::<Page>(), taking::<Option<Page>>()] {
            let answer = answer(router.check_params().unwrap(), "take", &params).await;
            assert_eq!(answer["result"], 1, "{params} {answer}");
        }
    }
}

struct Broken;

impl JsonSchema for Broken {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Broken".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"properties": {"a": {"type": "string", "pattern": "("}}})
    }
}

#[test]
fn an_invalid_schema_is_reported_at_once() {
    let router = Router::new()
        .method("broken", |(): (), _cx: Context| async { Ok(()) })
        .describe("broken", Description::method::<Broken, ()>());
    let error = router.check_params().unwrap_err();
    assert!(error.to_string().starts_with("the schema of `broken` is invalid: "), "{error}");
}

fn misfit(document: &Document, method: &str, params: &Value) -> Option<(String, String)> {
    let params = RawJson::parse(params.to_string()).map(Params::from_json);
    let params = params.ok().and_then(Result::ok);
    match document.check_call(method, params.as_ref()) {
        Ok(()) => None,
        Err(InvalidCallError::Params { path, reason }) => Some((path, reason)),
        Err(other) => Some(("?".to_owned(), other.to_string())),
    }
}

#[test]
fn a_call_is_checked_against_the_document_before_it_is_sent() {
    let document = Office.into_router().openrpc(Info::new("Office", "1"));
    let good = json!({"names": ["Ada"]});
    for params in [json!([good]), json!({"person": good}), json!([good, 3, null])] {
        assert_eq!(misfit(&document, "fill", &params), None, "{params}");
        assert_eq!(misfit(&document, "file", &params), None, "an alias");
    }
    for (method, params, path, reason) in [
        ("fill", json!([{"names": ["ada"]}]), "[0].names[0]", "[A-Z]"),
        ("fill", json!({"person": good, "copies": "two"}), "copies", "integer"),
        ("fill", Value::Null, "", "`person` is missing"),
        ("fill", json!([]), "", "`person` is missing"),
        ("fill", json!({"copies": 1}), "", "`person` is missing"),
        ("fill", json!([good, 1, "n", 4]), "[3]", "no more params"),
        ("fill", json!({"person": good, "colour": 1}), "colour", "no param with this name"),
        ("sign", json!(["Ada", "grace"]), "[1]", "[A-Z]"),
        ("sign", json!({"names": []}), "", "by position"),
        ("fills", json!([]), "?", "no method `fills`"),
    ] {
        let (at, why) = misfit(&document, method, &params).expect("a misfit");
        assert_eq!(at, path, "{method} {params}: {why}");
        assert!(why.contains(reason), "{method} {params}: {why}");
    }
}

/// The kinds of a topic share a method, which takes the kind and then the params of that kind.
#[test]
fn a_repeated_param_takes_the_remaining_values() {
    let document = Document::parse(
        &json!({
            "openrpc": "1.4.1", "info": {"title": "t", "version": "1"},
            "methods": [{"name": "follow", "params": [
                {"name": "kind", "required": true, "schema": {"enum": ["heads"]}},
                {"name": "more", "x-repeated": true, "schema": {"type": "integer"}},
            ]}],
        })
        .to_string(),
    )
    .unwrap();
    assert_eq!(misfit(&document, "follow", &json!(["heads"])), None);
    assert_eq!(misfit(&document, "follow", &json!(["heads", 1, 2])), None);
    assert_eq!(misfit(&document, "follow", &json!(["heads", 1, "2"])).unwrap().0, "[2]");
    assert_eq!(misfit(&document, "follow", &json!(["tails"])).unwrap().0, "[0]");
}
