//! The client and a server of revision 2026-07-28.

use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::ErrorObject;
use antiphon_mcp::client::{McpClient, McpError, ServerEra, ServerNotification};
use antiphon_mcp::types::{
    ElicitResult, Implementation, LoggingLevel, Revision, Root, SubscriptionFilter,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::scripted::{Scripted, discovered, text, unknown};

fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result
}

#[tokio::test]
async fn each_request_names_its_revision_and_capabilities() {
    let server = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({"tools": {}}))),
            "tools/call" => Ok(complete(text("ok"))),
            _ => unknown(),
        }
    })
    .await;
    let builder = McpClient::builder()
        .client_info(Implementation::new("tester", "7"))
        .on_elicit_form(|_| async { Ok(ElicitResult::cancel()) })
        .roots(vec![]);
    let client = server.connect(builder).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert_eq!(client.server_info().unwrap().name, "scripted");
    assert!(client.server_capabilities().tools.is_some());
    client.set_level(LoggingLevel::Error).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
    let meta = &server.params("tools/call")[0]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"],
        json!({"name": "tester", "version": "7"})
    );
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(capabilities, &json!({"elicitation": {"form": {}}, "roots": {"listChanged": true}}));
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "error");
    assert_eq!(server.methods(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn input_is_gathered_and_the_state_sent_back_unchanged() {
    let server = Scripted::start(|method, params, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({"tools": {}}))),
            "tools/call" if params["requestState"] == "s/1=" => Ok(complete(text(
                params["inputResponses"]["who"]["content"]["name"].as_str().unwrap_or("nobody"),
            ))),
            // Only a state: the client repeats the request at once.
            "tools/call" if params.get("requestState").is_some() => Ok(json!({
                "resultType": "input_required", "requestState": "s/1=",
                "inputRequests": {
                    "where": {"method": "roots/list"},
                    "who": {"method": "elicitation/create", "params": {"message": "Who?",
                        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}})),
            "tools/call" => Ok(json!({"resultType": "input_required", "requestState": "s/0"})),
            _ => unknown(),
        }
    })
    .await;
    let builder =
        McpClient::builder().roots(vec![Root::new("file:///r")]).on_elicit(|question| async move {
            assert_eq!(question.message(), "Who?");
            Ok(ElicitResult::accept(json!({"name": "Ada"}).as_object().unwrap().clone()))
        });
    let client = server.connect(builder).await.unwrap();
    let result = client.call_tool("greet", json!({"a": 1})).await.unwrap();
    assert_eq!(result.joined_text(), "Ada");
    let calls = server.params("tools/call");
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[1].get("inputResponses"), None);
    assert_eq!(calls[2]["inputResponses"]["where"]["roots"][0]["uri"], "file:///r");
    assert!(calls.iter().all(|call| call["arguments"] == json!({"a": 1})));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_has_enough_input_is_given_up() {
    let server = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            _ => Ok(json!({"resultType": "input_required", "requestState": "again"})),
        }
    })
    .await;
    let client = server.connect(McpClient::builder().max_input_rounds(3)).await.unwrap();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::TooManyInputRounds(3)), "{error}");
    assert_eq!(server.params("tools/call").len(), 4);
    // The other methods may not ask.
    let error = client.list_prompts().await.unwrap_err();
    assert!(matches!(error, McpError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn a_question_without_a_handler_fails_the_call() {
    let server = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            _ => Ok(json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}})),
        }
    })
    .await;
    let error = server.client().await.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(&error, McpError::Input { name, .. } if name == "r"), "{error}");
}

#[tokio::test]
async fn results_are_cached_for_their_lifetime() {
    let server = Scripted::start(|method, _, _| async move {
        let list = |ttl: u64| json!({"resultType": "complete", "tools": [], "ttlMs": ttl, "cacheScope": "private"});
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            "tools/list" => Ok(list(60_000)),
            "prompts/list" => Ok(json!({"resultType": "complete", "prompts": [], "ttlMs": 0})),
            "resources/read" => {
                Ok(json!({"resultType": "complete", "contents": [{"uri": "a:b", "text": "x"}], "ttlMs": 60_000}))
            }
            _ => unknown(),
        }
    })
    .await;
    let client = server.client().await;
    for _ in 0..2 {
        client.list_tools().await.unwrap();
        client.list_prompts().await.unwrap();
        client.read_resource("a:b").await.unwrap();
    }
    assert_eq!(server.params("tools/list").len(), 1);
    assert_eq!(server.params("prompts/list").len(), 2);
    assert_eq!(server.params("resources/read").len(), 1);
}

#[tokio::test]
async fn a_subscription_passes_on_its_notifications_and_invalidates_the_cache() {
    let (notify, notified) = mpsc::channel::<(&str, Value)>(8);
    let notified = Arc::new(tokio::sync::Mutex::new(notified));
    let server = Scripted::start(move |method, params, cx| {
        let notified = notified.clone();
        async move {
            match &*method {
                "server/discover" => Ok(discovered(&json!({}))),
                "tools/list" => Ok(json!({"resultType": "complete", "tools": [], "ttlMs": 60_000})),
                "subscriptions/listen" => {
                    let id: Value = serde_json::from_str(cx.id().unwrap().as_str()).unwrap();
                    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                    let peer = cx.peer().unwrap();
                    let granted =
                        json!({"toolsListChanged": params["notifications"]["toolsListChanged"]});
                    let acknowledged = json!({"_meta": meta, "notifications": granted});
                    peer.notify("notifications/subscriptions/acknowledged", acknowledged)
                        .await
                        .unwrap();
                    let mut notified = notified.lock().await;
                    while let Some((method, mut params)) = notified.recv().await {
                        params["_meta"] = meta.clone();
                        peer.notify(method, params).await.unwrap();
                    }
                    Ok(json!({"resultType": "complete", "_meta": meta}))
                }
                _ => unknown(),
            }
        }
    })
    .await;
    let client = server.client().await;
    client.list_tools().await.unwrap();
    let filter = SubscriptionFilter::list_changes();
    let mut changes = client.listen(filter).await.unwrap();
    assert_eq!(changes.acknowledged(), &SubscriptionFilter::new().with_tools_list_changed(true));
    notify.send(("notifications/tools/list_changed", json!({}))).await.unwrap();
    notify.send(("notifications/resources/updated", json!({"uri": "a:b"}))).await.unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap(), ServerNotification::ToolsChanged);
    let updated = ServerNotification::ResourceUpdated { uri: "a:b".to_owned() };
    assert_eq!(changes.next().await.unwrap().unwrap(), updated);
    client.list_tools().await.unwrap();
    assert_eq!(server.params("tools/list").len(), 2);
    // A result ends the subscription.
    drop(notify);
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn a_cancellation_by_the_server_ends_a_subscription() {
    let server = Scripted::start(|method, _, cx| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            "subscriptions/listen" => {
                let id: Value = serde_json::from_str(cx.id().unwrap().as_str()).unwrap();
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                let peer = cx.peer().unwrap();
                let acknowledged = json!({"_meta": meta, "notifications": {}});
                peer.notify("notifications/subscriptions/acknowledged", acknowledged)
                    .await
                    .unwrap();
                peer.notify("notifications/cancelled", json!({"requestId": id})).await.unwrap();
                std::future::pending().await
            }
            _ => unknown(),
        }
    })
    .await;
    let client = server.client().await;
    let mut changes = client.listen(SubscriptionFilter::new()).await.unwrap();
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn a_refused_subscription_is_an_error() {
    let server = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            _ => unknown(),
        }
    })
    .await;
    let error = server.client().await.listen(SubscriptionFilter::list_changes()).await.unwrap_err();
    assert_eq!(error.code(), Some(-32601));
}

#[tokio::test]
async fn the_revision_is_chosen_from_those_of_the_server() {
    // The server knows a later revision than the client, and a common one.
    let server = Scripted::start(|method, params, _| async move {
        let asked = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        match &*method {
            "server/discover" if asked == "2026-07-28" => Ok(json!({"resultType": "complete",
                "supportedVersions": ["2030-01-01", "2026-07-28"], "capabilities": {}})),
            _ => unknown(),
        }
    })
    .await;
    assert_eq!(server.client().await.era(), ServerEra::new(Revision::V2026_07_28));
    // It has none in common.
    let server = Scripted::start(|_, _, _| async move {
        let data = json!({"supported": ["2030-01-01"], "requested": "2026-07-28"});
        Err(ErrorObject::new(-32022, "Unsupported protocol version").with_data(&data))
    })
    .await;
    let error = server.connect(McpClient::builder()).await.unwrap_err();
    assert!(
        matches!(&error, McpError::NoCommonRevision { supported } if supported == &["2030-01-01"]),
        "{error}"
    );
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (cancelled, mut was_cancelled) = mpsc::unbounded_channel();
    let (started, mut has_started) = mpsc::unbounded_channel();
    let server = Scripted::start(move |method, _, cx| {
        let (cancelled, started) = (cancelled.clone(), started.clone());
        async move {
            match &*method {
                "server/discover" => Ok(discovered(&json!({}))),
                _ => {
                    let token = cx.cancellation().clone();
                    tokio::spawn(async move {
                        token.cancelled().await;
                        let _ = cancelled.send(());
                    });
                    let _ = started.send(());
                    std::future::pending().await
                }
            }
        }
    })
    .await;
    let client = server.client().await;
    let other = client.clone();
    let call = tokio::spawn(async move { other.call_tool("slow", ()).await });
    has_started.recv().await.unwrap();
    call.abort();
    was_cancelled.recv().await.unwrap();
    let error = client.call_tool("slow", ()).timeout(Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(error, McpError::TimedOut(_)), "{error}");
    was_cancelled.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout_up_to_a_limit() {
    let server = Scripted::start(|method, params, cx| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({}))),
            _ => {
                let token = &params["_meta"]["progressToken"];
                for step in 0..params["arguments"]["steps"].as_u64().unwrap() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let progress = json!({"progressToken": token, "progress": step});
                    cx.peer().unwrap().notify("notifications/progress", progress).await.unwrap();
                }
                Ok(complete(text("done")))
            }
        }
    })
    .await;
    let client = server.client().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let steps = seen.clone();
    let limits = |steps: u64| {
        let call = client.call_tool("slow", json!({"steps": steps}));
        call.timeout(Duration::from_millis(1500)).extend_on_progress(Duration::from_secs(6))
    };
    let call = limits(4).on_progress(move |progress| steps.lock().unwrap().push(progress.progress));
    assert_eq!(call.await.unwrap().joined_text(), "done");
    assert_eq!(*seen.lock().unwrap(), [0.0, 1.0, 2.0, 3.0]);
    let error = limits(10).await.unwrap_err();
    assert!(
        matches!(error, McpError::TimedOut(limit) if limit == Duration::from_secs(6)),
        "{error}"
    );
    let plain = client.call_tool("slow", json!({"steps": 4})).timeout(Duration::from_millis(1500));
    assert!(matches!(plain.await, Err(McpError::TimedOut(_))));
}

/// A server that turns calls into tasks. `states` are the states that it reports, one after the other.
async fn with_tasks(states: Vec<Value>) -> Scripted {
    let states = Arc::new(Mutex::new(states.into_iter()));
    Scripted::start(move |method, params, _| {
        let states = states.clone();
        async move {
            let task = |mut state: Value| {
                let known = json!({"taskId": "t1", "createdAt": "2026-01-01T00:00:00Z",
                    "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 30});
                state.as_object_mut().unwrap().extend(known.as_object().unwrap().clone());
                state
            };
            match &*method {
                "server/discover" => Ok(discovered(&json!({}))),
                "tools/call" => Ok(task(json!({"resultType": "task", "status": "working"}))),
                "tasks/get" => {
                    assert_eq!(params["taskId"], "t1");
                    let next = states.lock().unwrap().next();
                    Ok(task(next.unwrap_or_else(|| json!({"resultType": "complete", "status": "working"}))))
                }
                "tasks/update" | "tasks/cancel" => Ok(json!({"resultType": "complete"})),
                _ => unknown(),
            }
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_to_its_result() {
    let asks = json!({"resultType": "complete", "status": "input_required",
        "inputRequests": {"where": {"method": "roots/list"}}});
    let done = json!({"resultType": "complete", "status": "completed", "result": text("done")});
    let working = json!({"resultType": "complete", "status": "working"});
    let server = with_tasks(vec![working, asks.clone(), asks, done]).await;
    let client = server.connect(McpClient::builder().tasks().roots(vec![])).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "done");
    // A question that is reported twice is answered once.
    let updates = server.params("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["inputResponses"], json!({"where": {"roots": []}}));
    assert!(server.params("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_may_fail_or_be_cancelled() {
    let failed = json!({"status": "failed", "error": {"code": -32000, "message": "broken"}});
    let server =
        with_tasks(vec![failed, json!({"status": "cancelled", "statusMessage": "why"})]).await;
    let client = server.connect(McpClient::builder().tasks()).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap_err().code(), Some(-32000));
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(&error, McpError::TaskCancelled { reason } if reason == "why"), "{error}");
    // Dropping a call cancels its task.
    let call =
        tokio::time::timeout(Duration::from_secs(1), client.call_tool("t", ()).into_future());
    assert!(call.await.is_err());
    while server.params("tasks/cancel").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A client that has not declared it accepts no task.
    let error = server.client().await.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn a_modern_server_asks_only_in_its_results() {
    let server = Scripted::start(|method, _, cx| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({"tools": {}}))),
            "tools/call" => {
                let answer = cx.peer()?.call::<Value>("roots/list", json!({})).await;
                let mut result = text(if answer.is_ok() { "answered" } else { "refused" });
                result["resultType"] = json!("complete");
                Ok(result)
            }
            _ => unknown(),
        }
    })
    .await;
    let client = server.connect(McpClient::builder().roots(vec![])).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "refused");
}

#[tokio::test]
async fn a_result_that_depends_on_input_is_not_cached() {
    let server = Scripted::start(|method, params, _| async move {
        match &*method {
            "server/discover" => Ok(discovered(&json!({"resources": {}}))),
            "resources/read" if params["inputResponses"].is_null() => {
                Ok(json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}))
            }
            "resources/read" => Ok(json!({"resultType": "complete", "contents": [],
                "ttlMs": 60_000, "cacheScope": "private"})),
            _ => unknown(),
        }
    })
    .await;
    let client = server.connect(McpClient::builder().roots(vec![])).await.unwrap();
    for rounds in [2, 4] {
        client.read_resource("a:b").await.unwrap();
        assert_eq!(server.params("resources/read").len(), rounds);
    }
}

#[tokio::test]
async fn an_empty_cursor_is_a_page_of_its_own() {
    let server = Scripted::start(|method, params, _| async move {
        let page = |name: &str, next: Value| {
            Ok(json!({"resultType": "complete", "prompts": [{"name": name}], "nextCursor": next,
                "ttlMs": 60_000, "cacheScope": "private"}))
        };
        match (&*method, params.get("cursor")) {
            ("server/discover", _) => Ok(discovered(&json!({"prompts": {}}))),
            ("prompts/list", None) => page("a", json!("")),
            ("prompts/list", Some(_)) => page("b", Value::Null),
            _ => unknown(),
        }
    })
    .await;
    let client = server.client().await;
    for _ in 0..2 {
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a", "b"]);
    }
    assert_eq!(server.params("prompts/list").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_a_task_and_of_a_result_are_bounded() {
    let asks = |names: std::ops::Range<usize>| {
        let requests: serde_json::Map<_, _> =
            names.map(|name| (name.to_string(), json!({"method": "roots/list"}))).collect();
        json!({"status": "input_required", "resultType": "complete", "inputRequests": requests})
    };
    let builder = || McpClient::builder().tasks().roots(vec![]).max_input_rounds(2);
    let server = with_tasks(vec![asks(0..1), asks(0..2), asks(0..2), asks(2..3)]).await;
    let client = server.connect(builder()).await.unwrap();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::TooManyInputRounds(2)), "{error}");
    assert_eq!(server.params("tasks/update").len(), 2);
    let server = with_tasks(vec![asks(0..65)]).await;
    let client = server.connect(builder()).await.unwrap();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("more than 64 questions"), "{error}");
    assert!(server.params("tasks/update").is_empty());
}
