//! Params held against their schemas.

use antiphon::openrpc::{Description, Document, Info, MisfitError};
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
async fn what_only_a_schema_forbids_is_refused_with_its_path() {
    let bad = json!({"names": ["Ada", "lovelace"]});
    for (method, params, path) in [
        ("fill", json!([bad]), "[0].names[1]"),
        ("fill", json!({"person": bad}), "person.names[1]"),
        ("file", json!({"person": bad}), "person.names[1]"),
        ("sign", json!(["Ada", "lovelace"]), "[1]"),
    ] {
        // It is the check that refuses: the types do not.
        assert!(answer(Office.into_router(), method, &params).await["result"].is_u64());
        let error = &answer(checked(), method, &params).await["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["data"]["path"], path, "{method} {params}");
        let reason = error["data"]["reason"].as_str().unwrap();
        assert!(reason.contains("[A-Z]") && !reason.contains("lovelace"), "{reason}");
    }
}

#[tokio::test]
async fn what_fits_is_let_through_and_what_is_left_out_too() {
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
async fn what_is_no_matter_of_schemas_is_refused_as_without_them() {
    for params in [json!([]), json!({"persona": 1}), json!([{"names": []}, 1, null, 4])] {
        let unchecked = answer(Office.into_router(), "fill", &params).await;
        assert!(unchecked["error"]["code"] == -32602);
        assert_eq!(answer(checked(), "fill", &params).await, unchecked);
    }
}

#[tokio::test]
async fn a_subscription_is_checked_too_each_kind_by_its_own_schema() {
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
        // There is nobody to send items to.
        let passed = answer(router(), "eth_subscribe", &params).await;
        assert_eq!(passed["error"]["code"], -32603, "{passed}");
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
fn a_schema_that_is_none_is_named_at_once() {
    let router = Router::new()
        .method("broken", |(): (), _cx: Context| async { Ok(()) })
        .describe("broken", Description::method::<Broken, ()>());
    let error = router.check_params().unwrap_err();
    assert!(error.to_string().starts_with("the schema of `broken` is none: "), "{error}");
}

fn misfit(document: &Document, method: &str, params: &Value) -> Option<(String, String)> {
    let params = RawJson::parse(params.to_string()).map(Params::from_json);
    let params = params.ok().and_then(Result::ok);
    match document.check_call(method, params.as_ref()) {
        Ok(()) => None,
        Err(MisfitError::Params { path, reason }) => Some((path, reason)),
        Err(other) => Some(("?".to_owned(), other.to_string())),
    }
}

#[test]
fn a_call_is_held_against_the_document_before_it_is_sent() {
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
        ("fill", json!([good, 1, "n", 4]), "[3]", "more than"),
        ("fill", json!({"person": good, "colour": 1}), "colour", "no param of this name"),
        ("sign", json!(["Ada", "grace"]), "[1]", "[A-Z]"),
        ("sign", json!({"names": []}), "", "by position"),
        ("fills", json!([]), "?", "no method `fills`"),
    ] {
        let (at, why) = misfit(&document, method, &params).expect("a misfit");
        assert_eq!(at, path, "{method} {params}: {why}");
        assert!(why.contains(reason), "{method} {params}: {why}");
    }
}

/// Topics of kinds share a method, which takes a kind and then whatever that kind takes.
#[test]
fn what_is_repeated_takes_what_is_left() {
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
