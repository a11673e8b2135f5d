//! Params by position and by name: absent, surplus, and of the wrong type.

use std::convert::Infallible;

use antiphon::Responder;
use serde_json::{Value, json};

use crate::library::shelves;

async fn answer(method: &str, params: &Value) -> Value {
    let (router, _told) = shelves();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = Responder::new(router).answer(request.to_string()).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

#[tokio::test]
async fn a_server_accepts_params_by_position_and_by_name() {
    for params in [json!([42, 23]), json!({"subtrahend": 23, "minuend": 42})] {
        assert_eq!(answer("library.subtract", &params).await["result"], 19);
    }
}

#[tokio::test]
async fn optional_params_may_be_absent_by_position_and_by_name() {
    for (params, offset, limit, order) in [
        (json!([]), json!(null), 10, ""),
        (json!({}), json!(null), 10, ""),
        (json!([3]), json!(3), 10, ""),
        (json!([null, null, "title"]), json!(null), 10, "title"),
        (json!([3, 4, "title"]), json!(3), 4, "title"),
        (json!({"limit": 4}), json!(null), 4, ""),
        (json!({"orderBy": "title", "offset": null, "limit": null}), json!(null), 10, "title"),
    ] {
        let result = &answer("list", &params).await["result"];
        let expected =
            json!({"offset": offset, "limit": limit, "order": order, "transport": "none"});
        assert_eq!(*result, expected, "{params}");
    }
}

#[tokio::test]
async fn absent_params_are_none() {
    let (router, _told) = shelves();
    let responder = Responder::new(router);
    for (method, part) in [
        ("library.ping", "\"pong\""),
        ("library.page", "\"limit\":10"),
        ("library.echo", "[]"),
        ("library.subtract", "missing param `minuend`"),
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        let answer = responder.answer(request).await.unwrap();
        let answer = std::str::from_utf8(&answer).unwrap();
        assert!(answer.contains(part), "{answer}");
    }
}

#[tokio::test]
async fn errors_name_the_param_and_the_reason() {
    for (method, params, path, reason) in [
        ("subtract", json!([1]), "", "missing param `subtrahend`"),
        ("subtract", json!({"minuend": 1}), "", "missing param `subtrahend`"),
        (
            "subtract",
            json!([1, 2, 3]),
            "",
            "more params than the method takes: `minuend`, `subtrahend`",
        ),
        (
            "subtract",
            json!({"minuend": 1, "subtrahend": 2, "x": 3}),
            "x",
            "unknown param `x`: the method takes `minuend`, `subtrahend`",
        ),
        ("subtract", json!(["a", 2]), "[0]", "invalid type: string \"a\", expected i64"),
        (
            "subtract",
            json!({"minuend": 1, "subtrahend": null}),
            "subtrahend",
            "invalid type: null, expected i64",
        ),
        (
            "lend",
            json!({"book": {"title": "Emma", "pages": -1}}),
            "book.pages",
            "invalid value: integer `-1`, expected u32",
        ),
        ("lend", json!([{"title": "Emma"}]), "[0]", "missing field `pages`"),
        ("ping", json!([1]), "", "the method takes no params"),
        ("ping", json!({"a": 1}), "a", "unknown param `a`: the method takes no params"),
        (
            "page",
            json!({"order": ""}),
            "order",
            "unknown param `order`: the method takes `offset`, `limit`, `orderBy`",
        ),
    ] {
        let error = &answer(&format!("library.{method}"), &params).await["error"];
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        assert_eq!(error["data"], json!({"path": path, "reason": reason}), "{method} {params}");
    }
}

#[tokio::test]
async fn a_duplicate_name_is_refused() {
    let (router, _told) = shelves();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"library.subtract",
        "params":{"minuend":1,"minuend":2,"subtrahend":3}}"#;
    let answer = Responder::new(router).answer(request).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let reason = answer["error"]["data"]["reason"].as_str().unwrap();
    assert_eq!(reason, "param `minuend` is given twice");
}

/// Types with the names of type parameters in generated code.
type D = i64;
type S = Option<i64>;

#[antiphon::rpc]
trait Defaults {
    async fn count(
        &self,
        #[param(default = 7)] n: D,
        #[param(default = Some(5))] m: S,
        #[param(default = Some(6))] o: Option<i64>,
    ) -> Result<Value, Infallible>;
}

struct Counter;

impl Defaults for Counter {
    async fn count(&self, n: D, m: S, o: Option<i64>) -> Result<Value, Infallible> {
        Ok(json!([n, m, o]))
    }
}

#[tokio::test]
async fn a_default_replaces_an_absent_param_and_null_of_an_option_is_none() {
    for (params, counted) in [
        (json!([]), json!([7, 5, 6])),
        (json!({}), json!([7, 5, 6])),
        (json!([1]), json!([1, 5, 6])),
        (json!({"o": null}), json!([7, 5, null])),
        (json!([null, 2, null]), json!([7, 2, null])),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "count", "params": params});
        let responder = Responder::new(Counter.into_router());
        let answer = responder.answer(request.to_string()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["result"], counted, "{params} {answer}");
    }
}

#[tokio::test]
async fn a_duplicate_name_is_refused_after_a_null() {
    for params in [r#"{"n":null,"n":5}"#, r#"{"n":null,"n":null}"#, r#"{"m":1,"m":null}"#] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"count","params":{params}}}"#);
        let answer = Responder::new(Counter.into_router()).answer(request).await.unwrap();
        let answer = std::str::from_utf8(&answer).unwrap();
        assert!(answer.contains("is given twice"), "{params} {answer}");
    }
}

#[antiphon::rpc(unknown_params = "ignore")]
trait Tolerant {
    async fn double(&self, n: i64) -> Result<i64, Infallible>;
    async fn nothing(&self) -> Result<(), Infallible>;
}

struct Anything;

impl Tolerant for Anything {
    async fn double(&self, n: i64) -> Result<i64, Infallible> {
        Ok(n * 2)
    }

    async fn nothing(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Names that a dialect adds to the params.
#[tokio::test]
async fn unknown_names_are_ignored_if_the_contract_says_so() {
    for (method, params, result) in [
        ("double", json!({"_meta": {"progressToken": 1}, "n": 2}), json!(4)),
        ("nothing", json!({"workDoneToken": "t"}), json!(null)),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let responder = Responder::new(Anything.into_router());
        let answer = responder.answer(request.to_string()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["result"], result, "{answer}");
        assert!(answer.get("error").is_none(), "{answer}");
    }
}

/// The peer chose the name, so it is not sent back in full.
#[tokio::test]
async fn a_long_name_is_cut() {
    let params = json!({"x".repeat(100_000): 1});
    let error = &answer("library.ping", &params).await["error"];
    assert!(error["data"]["reason"].as_str().unwrap().len() < 200);
}
