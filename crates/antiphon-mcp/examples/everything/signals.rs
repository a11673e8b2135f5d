//! Tools that signal while they run: progress, logs, changes, closed streams, cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_mcp::types::LoggingLevel;
use antiphon_mcp::{RequestContext, ServerBuilder, ServerTool};
use tokio::time::sleep;

/// The pause between two signals: the suite wants to see them one by one.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let cancelled = Arc::new(AtomicUsize::new(0));
    let count = cancelled.clone();
    builder
        .tool(
            ServerTool::new("test_tool_with_logging", |(): (), cx: RequestContext| async move {
                for text in ["Tool execution started", "Tool processing data"] {
                    cx.log(LoggingLevel::Info, text).await;
                    sleep(PAUSE).await;
                }
                cx.log(LoggingLevel::Info, "Tool execution completed").await;
                "Tool with logging executed successfully"
            })
            .description("Logs three messages."),
        )
        .tool(
            ServerTool::new("test_tool_with_progress", |(): (), cx: RequestContext| async move {
                for progress in [0.0, 50.0, 100.0] {
                    cx.progress(progress, Some(100.0), None).await;
                    sleep(PAUSE).await;
                }
                let token = cx.meta().progress_token();
                token.map_or_else(|| "no progress token".to_owned(), |token| token.to_string())
            })
            .description("Reports progress three times."),
        )
        .tool(
            ServerTool::new("test_logging_tool", |(): (), cx: RequestContext| async move {
                cx.log(LoggingLevel::Info, "Logging evaluated").await;
                "Logging evaluated"
            })
            .description("Logs a message if the client wants it."),
        )
        .tool(
            ServerTool::new("test_reconnection", |(): (), cx: RequestContext| async move {
                cx.close_stream();
                sleep(PAUSE).await;
                "Reconnection test completed successfully"
            })
            .description("Closes its stream, so that the client resumes it."),
        )
        .tool(
            ServerTool::new("test_trigger_tool_change", |(): (), cx: RequestContext| async move {
                cx.server().tools_changed();
                "Mutation triggered"
            })
            .description("Tells clients that the tools have changed."),
        )
        .tool(
            ServerTool::new(
                "test_trigger_prompt_change",
                |(): (), cx: RequestContext| async move {
                    cx.server().prompts_changed();
                    "Mutation triggered"
                },
            )
            .description("Tells clients that the prompts have changed."),
        )
        .tool(
            ServerTool::new(
                "test_trigger_resource_change",
                |(): (), cx: RequestContext| async move {
                    cx.server().resource_updated("test://watched-resource");
                    "Mutation triggered"
                },
            )
            .description("Tells subscribers that the watched resource was updated."),
        )
        .tool(
            ServerTool::new("test_cancellation", move |(): (), cx: RequestContext| {
                let counter = CountsDrop(Some(cancelled.clone()));
                async move {
                    let mut counter = counter;
                    // A client that cancels at this report knows that the call has begun.
                    cx.progress(0.0, Some(1.0), None).await;
                    sleep(Duration::from_secs(30)).await;
                    counter.0 = None;
                    "not cancelled"
                }
            })
            .description("Waits until it is cancelled, for at most 30 seconds."),
        )
        .tool(
            ServerTool::new("test_cancellation_count", move |(): (), _cx: RequestContext| {
                let count = count.load(Ordering::SeqCst);
                async move { count.to_string() }
            })
            .description("Returns how many calls of test_cancellation were cancelled."),
        )
}

/// Counts a call that is dropped before its end.
struct CountsDrop(Option<Arc<AtomicUsize>>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        if let Some(counter) = &self.0 {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }
}
