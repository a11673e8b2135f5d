//! Questions to modern clients: results that ask, the state that the client keeps, and handlers that the server keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_mcp::types::{ElicitFormParams, ElicitationSchema, StringSchema};
use antiphon_mcp::{McpServer, RequestContext, Rounds, ServerBuilder, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::asking::accept;
use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::{code, modern_with, text, tool};

/// Counts the starts of a handler, and of a step that must run once.
#[derive(Clone, Default)]
struct Counts {
    starts: Arc<AtomicUsize>,
    steps: Arc<AtomicUsize>,
}

impl Counts {
    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }

    /// A tool that runs a step, and then asks for two names.
    fn tool(&self) -> ServerTool {
        let counts = self.clone();
        ServerTool::new("names", move |(): (), cx: RequestContext| {
            let counts = counts.clone();
            async move {
                counts.starts.fetch_add(1, Ordering::SeqCst);
                let step =
                    async { Ok::<_, ToolError>(counts.steps.fetch_add(1, Ordering::SeqCst) + 1) };
                let step = cx.once("step", step).await?;
                let one = ask(&cx, "one").await?;
                cx.progress(1.0, None, None).await;
                let two = ask(&cx, "two").await?;
                Ok::<_, ToolError>(format!("{step}: {one}, {two}"))
            }
        })
    }
}

async fn ask(cx: &RequestContext, key: &str) -> Result<String, ToolError> {
    let form = ElicitationSchema::new().required("name", StringSchema::new());
    let answer = cx.question(key).elicit(ElicitFormParams::new("Name?", form)).await?;
    let name = answer.content.and_then(|content| Some(content.get("name")?.as_str()?.to_owned()));
    Ok(name.unwrap_or_default())
}

fn builder(counts: &Counts) -> ServerBuilder {
    McpServer::builder("test", "1").tool(counts.tool())
}

/// The params of a round: the state of the last result, and answers.
fn round(last: &Value, answers: &Value) -> Value {
    let mut params = modern_with(tool("names", json!({})), json!({ "elicitation": {} }));
    params["requestState"] = last["result"]["requestState"].clone();
    params["inputResponses"] = answers.clone();
    params
}

/// Sends a round, and expects a question with this key.
async fn asked(client: &mut Duplex, params: Value, key: &str) -> Value {
    let response = client.call("tools/call", params).await;
    assert_eq!(response["result"]["resultType"], "input_required", "{response}");
    assert!(response["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
    let requests = response["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), [key]);
    assert_eq!(requests[key]["method"], "elicitation/create");
    response
}

async fn first(client: &mut Duplex) -> Value {
    asked(client, round(&json!({}), &json!({})), "one").await
}

#[tokio::test]
async fn a_handler_is_replayed_but_its_steps_are_not() {
    let counts = Counts::default();
    let mut client = Duplex::connect(&builder(&counts).build()).await;
    let one = first(&mut client).await;
    let two = asked(&mut client, round(&one, &json!({ "one": accept("Ada") })), "two").await;
    let params = round(&two, &json!({ "two": accept("Bob") }));
    let last = client.call("tools/call", params.clone()).await;
    assert_eq!(text(&last), "1: Ada, Bob");
    assert_eq!(counts.starts(), 3);
    assert_eq!(text(&client.call("tools/call", params).await), "1: Ada, Bob", "sent twice");
}

#[tokio::test]
async fn what_is_no_answer_is_asked_again() {
    let mut client = Duplex::connect(&builder(&Counts::default()).build()).await;
    let mut last = first(&mut client).await;
    for answers in [json!({}), json!(null), json!({ "one": 7 }), json!({ "other": accept("x") })] {
        last = asked(&mut client, round(&last, &answers), "one").await;
    }
    for answers in [json!([]), json!(7), json!("one")] {
        let response = client.call("tools/call", round(&last, &answers)).await;
        assert_eq!(code(&response), -32602, "{answers}");
    }
    let invalid = json!({ "one": { "action": "accept", "content": { "name": 7 } } });
    let response = client.call("tools/call", round(&last, &invalid)).await;
    assert_eq!(code(&response), -32602);
}

#[tokio::test]
async fn a_state_that_is_forged_foreign_or_old_is_refused() {
    let counts = Counts::default();
    let server =
        builder(&counts).tool(ServerTool::new("other", |(): (), _cx: RequestContext| async {}));
    let mut client = Duplex::connect(&server.build()).await;
    let one = first(&mut client).await;
    let good = round(&one, &json!({ "one": accept("Ada") }));
    let state = one["result"]["requestState"].as_str().unwrap();
    for state in ["", "x", &state[1..], &format!("{state}A"), &"A".repeat(1 << 20)] {
        let mut forged = good.clone();
        forged["requestState"] = json!(state);
        let response = client.call("tools/call", forged).await;
        assert_eq!(code(&response), -32602);
        assert!(response.to_string().len() < 1000);
    }
    let mut other_tool = good.clone();
    other_tool["name"] = json!("other");
    let mut other_arguments = good.clone();
    other_arguments["arguments"] = json!({ "more": 1 });
    for foreign in [other_tool, other_arguments] {
        assert_eq!(code(&client.call("tools/call", foreign).await), -32602);
    }
    let mut elsewhere = Duplex::connect(&builder(&counts).build()).await;
    assert_eq!(code(&elsewhere.call("tools/call", good.clone()).await), -32602, "another key");
    asked(&mut client, good, "two").await;
}

#[tokio::test]
async fn replicas_with_the_same_key_share_states() {
    let counts = Counts::default();
    let replica = || builder(&counts).state_key(&[7; 32]).build();
    let mut client = Duplex::connect(&replica()).await;
    let one = first(&mut client).await;
    let mut client = Duplex::connect(&replica()).await;
    asked(&mut client, round(&one, &json!({ "one": accept("Ada") })), "two").await;
}

#[tokio::test]
async fn a_request_asks_a_limited_number_of_times() {
    let mut client = Duplex::connect(&builder(&Counts::default()).max_rounds(3).build()).await;
    let mut last = first(&mut client).await;
    for _ in 0..2 {
        last = asked(&mut client, round(&last, &json!({})), "one").await;
    }
    let response = client.call("tools/call", round(&last, &json!({}))).await;
    assert_eq!(code(&response), -32603);
}

fn keeping(counts: &Counts) -> ServerBuilder {
    builder(counts).rounds(Rounds::Keep)
}

#[tokio::test]
async fn a_kept_handler_continues() {
    let counts = Counts::default();
    let mut client = Duplex::connect(&keeping(&counts).build()).await;
    let one = first(&mut client).await;
    let mut params = round(&one, &json!({ "one": accept("Ada") }));
    params["_meta"]["progressToken"] = json!("second");
    client.begin("tools/call", params).await;
    let told = client.next().await;
    assert_eq!(told["params"]["progressToken"], "second", "the token of this request");
    let two = client.next().await;
    let last = client.call("tools/call", round(&two, &json!({ "two": accept("Bob") }))).await;
    assert_eq!(text(&last), "1: Ada, Bob");
    assert_eq!(counts.starts(), 1);
}

#[tokio::test]
async fn a_kept_handler_continues_once() {
    let counts = Counts::default();
    let mut client = Duplex::connect(&keeping(&counts).build()).await;
    let one = first(&mut client).await;
    let params = round(&one, &json!({ "one": accept("Ada") }));
    asked(&mut client, params.clone(), "two").await;
    let again = client.call("tools/call", params).await;
    assert_eq!(code(&again), -32602, "{again}");
    assert_eq!(counts.starts(), 1, "it did not run twice");
}

#[tokio::test]
async fn a_handler_over_the_limit_is_refused_and_does_not_run_twice() {
    let counts = Counts::default();
    let mut client = Duplex::connect(&keeping(&counts).kept_handlers(1).build()).await;
    let kept = first(&mut client).await;
    let refused = client.call("tools/call", round(&json!({}), &json!({}))).await;
    assert_eq!(code(&refused), -32009);
    let two = asked(&mut client, round(&kept, &json!({ "one": accept("Ada") })), "two").await;
    let last = client.call("tools/call", round(&two, &json!({ "two": accept("Bob") }))).await;
    assert!(text(&last).ends_with(": Ada, Bob"), "{last}");
    assert_eq!(counts.starts(), 2);
}

#[tokio::test]
async fn a_kept_handler_ends_when_nobody_comes_back() {
    let gate = Gate::new();
    let held = gate.clone();
    let names = ServerTool::new("names", move |(): (), cx: RequestContext| {
        let held = held.clone();
        async move { tokio::join!(ask(&cx, "one"), held.pass()).0 }
    });
    let server = McpServer::builder("test", "1").tool(names).rounds(Rounds::Keep);
    let server = server.state_lifetime(Duration::from_secs(1)).build();
    let mut client = Duplex::connect(&server).await;
    let one = first(&mut client).await;
    gate.ended(1).await;
    let response = client.call("tools/call", round(&one, &json!({ "one": accept("Ada") }))).await;
    assert_eq!(code(&response), -32602);
    assert_eq!(gate.count(), 1, "it did not run again");
}

#[tokio::test]
async fn answers_to_questions_that_nobody_asked_are_forgotten() {
    let counts = Counts::default();
    let mut client = Duplex::connect(&builder(&counts).build()).await;
    let mut answers = json!({ "one": accept("Ada"), "long": { "x": "y".repeat(200_000) } });
    answers["three"] = accept("Eve");
    let one = first(&mut client).await;
    let two = asked(&mut client, round(&one, &answers), "two").await;
    let state = two["result"]["requestState"].as_str().unwrap();
    assert!(state.len() < 2_000, "{} bytes", state.len());
    let last = client.call("tools/call", round(&two, &json!({ "two": accept("Bob") }))).await;
    assert_eq!(text(&last), "1: Ada, Bob");
}

#[tokio::test]
async fn an_answer_cannot_be_changed_later() {
    let counts = Counts::default();
    for server in [builder(&counts).build(), keeping(&counts).build()] {
        let mut client = Duplex::connect(&server).await;
        let one = first(&mut client).await;
        let two = asked(&mut client, round(&one, &json!({ "one": accept("Ada") })), "two").await;
        let answers = json!({ "one": accept("Eve"), "two": accept("Bob") });
        let last = client.call("tools/call", round(&two, &answers)).await;
        assert!(text(&last).ends_with(": Ada, Bob"), "{last}");
    }
}

#[tokio::test]
async fn the_state_of_a_kept_handler_does_not_hold_its_answers() {
    let mut client = Duplex::connect(&keeping(&Counts::default()).build()).await;
    let one = first(&mut client).await;
    let long = accept(&"x".repeat(100_000));
    let two = asked(&mut client, round(&one, &json!({ "one": long })), "two").await;
    assert!(two["result"]["requestState"].as_str().unwrap().len() < 500);
}

/// Asks for a name without a key of its own.
async fn unnamed(cx: &RequestContext) -> Result<String, ToolError> {
    let roots = cx.roots().await?;
    Ok(roots.into_iter().map(|root| root.uri).collect())
}

#[tokio::test]
async fn a_question_after_a_step_that_asks_keeps_its_key() {
    let names = ServerTool::new("names", |(): (), cx: RequestContext| async move {
        let one = cx.once("step", unnamed(&cx)).await?;
        let two = unnamed(&cx).await?;
        let three = unnamed(&cx).await?;
        Ok::<_, ToolError>(format!("{one}, {two}, {three}"))
    });
    let server = McpServer::builder("test", "1").tool(names).build();
    let mut client = Duplex::connect(&server).await;
    let params = |state: &Value, answers: Value| {
        let capabilities = json!({ "roots": {} });
        let mut params = modern_with(tool("names", json!({})), capabilities);
        if !state.is_null() {
            params["requestState"] = state["result"]["requestState"].clone();
            params["inputResponses"] = answers;
        }
        params
    };
    let answer = |root: &str| json!({ "roots": [{ "uri": root }] });
    let mut last = client.call("tools/call", params(&Value::Null, json!({}))).await;
    for (key, root) in [("step/roots-1", "a"), ("roots-1", "b"), ("roots-2", "c")] {
        assert!(last["result"]["inputRequests"][key].is_object(), "{key} {last}");
        last = client.call("tools/call", params(&last, json!({ key: answer(root) }))).await;
    }
    assert_eq!(text(&last), "a, b, c");
}
