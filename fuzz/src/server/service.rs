//! The service under test: methods that respond, refuse, fail, wait and panic, at once and later.

use std::time::Duration;

use antiphon::{Context, ErrorObject, RawJson, Router};
use serde::Deserialize;

/// Longer than all work that does not wait.
const SLOW: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

pub(crate) fn router() -> Router {
    Router::new()
        .method("subtract", |p: Subtract, _: Context| async move {
            p.minuend.checked_sub(p.subtrahend).ok_or_else(|| ErrorObject::new(1, "out of range"))
        })
        .method("sum", |numbers: Vec<i32>, _: Context| async move {
            Ok(numbers.into_iter().map(i64::from).sum::<i64>())
        })
        .method("echo", |params: Option<RawJson>, _: Context| async move {
            Ok(params.unwrap_or(RawJson::NULL))
        })
        .method("fail", |_: Option<RawJson>, _: Context| async { Err::<(), _>(failure()) })
        .method("panic", |_: Option<RawJson>, _: Context| async { panicking() })
        .method("sleep", |_: Option<RawJson>, _: Context| async {
            tokio::time::sleep(SLOW).await;
            Ok("slow")
        })
        .method("sleep_and_panic", |_: Option<RawJson>, _: Context| async {
            tokio::time::sleep(SLOW).await;
            panicking()
        })
        .notification("update", |_: Option<RawJson>, _: Context| async {
            tokio::task::yield_now().await;
        })
        .notification("notify_sum", |_: Vec<i32>, _: Context| async {
            tokio::time::sleep(SLOW).await;
        })
}

fn failure() -> ErrorObject {
    ErrorObject::new(7, "it failed")
}

/// Unwinds like a panic, but without the panic hook. The fuzzer stops when the hook runs, so only
/// unintended panics must reach it.
fn panicking() -> Result<(), ErrorObject> {
    std::panic::resume_unwind(Box::new("on purpose"))
}
