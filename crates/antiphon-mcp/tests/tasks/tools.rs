//! The tools of the tests, and what their handlers have done.

use std::sync::Arc;

use antiphon::{CancellationToken, ErrorObject};
use antiphon_mcp::types::{
    BooleanSchema, CallToolResult, ElicitFormParams, ElicitationSchema, TaskSupport,
};
use antiphon_mcp::{
    AskError, McpServer, RequestContext, ServerBuilder, ServerTool, Structured, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use crate::support::within;

/// What the handlers wait for, and what they have done.
pub(crate) struct Signals {
    /// Opens the gate of one call of `wait`.
    pub(crate) gate: Notify,
    /// How often handlers have begun.
    pub(crate) begun: watch::Sender<usize>,
    /// The number of handlers that were dropped before their end.
    pub(crate) dropped: watch::Sender<usize>,
    /// The cancellation of the last handler of `wait`.
    pub(crate) token: watch::Sender<CancellationToken>,
}

impl Signals {
    /// Waits until this number of handlers was dropped.
    pub(crate) async fn dropped(&self, number: usize) {
        let mut dropped = self.dropped.subscribe();
        within(dropped.wait_for(|dropped| *dropped >= number)).await.unwrap();
    }

    /// Waits until a handler has begun.
    pub(crate) async fn has_begun(&self) {
        within(self.begun.subscribe().wait_for(|begun| *begun > 0)).await.unwrap();
    }

    pub(crate) fn begun(&self) -> usize {
        *self.begun.borrow()
    }
}

/// Counts a handler that does not reach its end.
struct DropCount(Option<Arc<Signals>>);

impl Drop for DropCount {
    fn drop(&mut self) {
        if let Some(signals) = &self.0 {
            signals.dropped.send_modify(|dropped| *dropped += 1);
        }
    }
}

/// A server with all tools, whose tasks are optional where nothing else is said.
pub(crate) fn server() -> (McpServer, Arc<Signals>) {
    let (builder, signals) = builder();
    (builder.build(), signals)
}

pub(crate) fn builder() -> (ServerBuilder, Arc<Signals>) {
    let signals = Arc::new(Signals {
        gate: Notify::new(),
        begun: watch::Sender::new(0),
        dropped: watch::Sender::new(0),
        token: watch::Sender::new(CancellationToken::new()),
    });
    let optional = [
        wait("wait", &signals),
        ServerTool::new("number", |(): (), _cx: RequestContext| async {
            Structured(Number { number: u64::MAX })
        }),
        ServerTool::new("fail", |(): (), _cx: RequestContext| async {
            Err::<String, _>(ToolError::new("no paper"))
        }),
        ServerTool::new("error", |(): (), _cx: RequestContext| async {
            Err::<String, _>(ToolError::request(ErrorObject::new(-32050, "no printer")))
        }),
        ServerTool::new("panic", |(): (), _cx: RequestContext| async {
            if std::hint::black_box(true) {
                panic!("a panic for the test");
            }
        }),
        ServerTool::new(
            "text",
            |it: Length, _cx: RequestContext| async move { "x".repeat(it.length) },
        ),
        ServerTool::new("ask", |(): (), cx: RequestContext| async move {
            Ok::<_, ToolError>(confirm(&cx, "sure").await?)
        }),
        ServerTool::new("ask_twice", |(): (), cx: RequestContext| async move {
            let (one, two) = tokio::try_join!(confirm(&cx, "one"), confirm(&cx, "two"))?;
            Ok::<_, ToolError>(format!("{one} {two}"))
        }),
        ServerTool::new("ask_in_turn", |(): (), cx: RequestContext| async move {
            let one = confirm(&cx, "one").await?;
            let two = confirm(&cx, "two").await?;
            Ok::<_, ToolError>(format!("{one} {two}"))
        }),
        report("report", &signals),
    ];
    let required = wait("must_wait", &signals).task(TaskSupport::Required);
    let plain = ServerTool::new("plain", |(): (), _cx: RequestContext| async { "plain" });
    let builder = optional
        .into_iter()
        .map(|tool| tool.task(TaskSupport::Optional))
        .chain([required, plain])
        .fold(McpServer::builder("tasks", "1.0.0"), ServerBuilder::tool);
    (builder, signals)
}

#[derive(Serialize, JsonSchema)]
struct Number {
    number: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Length {
    length: usize,
}

/// Waits for the gate.
pub(crate) fn wait(name: &str, signals: &Arc<Signals>) -> ServerTool {
    let signals = signals.clone();
    ServerTool::new(name, move |(): (), cx: RequestContext| {
        let signals = signals.clone();
        async move {
            signals.token.send_replace(cx.cancellation());
            signals.begun.send_modify(|begun| *begun += 1);
            let mut count = DropCount(Some(signals.clone()));
            signals.gate.notified().await;
            count.0 = None;
            CallToolResult::text("waited")
        }
    })
}

/// Reports progress and logs, before and after the gate.
fn report(name: &str, signals: &Arc<Signals>) -> ServerTool {
    let signals = signals.clone();
    ServerTool::new(name, move |(): (), cx: RequestContext| {
        let signals = signals.clone();
        async move {
            cx.progress(1.0, Some(2.0), Some("half")).await;
            signals.gate.notified().await;
            cx.progress(2.0, Some(2.0), None).await;
            "reported"
        }
    })
}

/// Asks the user, and returns how the user has answered.
pub(crate) async fn confirm(cx: &RequestContext, key: &str) -> Result<String, AskError> {
    let form = ElicitationSchema::new().required("ok", BooleanSchema::new());
    let answer = cx.question(key).elicit(ElicitFormParams::new(format!("{key}?"), form)).await?;
    Ok(format!("{key}={}", serde_json::to_value(answer.action).unwrap().as_str().unwrap()))
}
