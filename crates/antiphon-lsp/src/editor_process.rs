//! The process of the editor: which it is, and when it has ended.
//!
//! Systems other than Unix are not supported: there the server ends with its connection only.

use std::time::Duration;

use antiphon::Params;
use serde::Deserialize;

/// The time between two looks at the process. A file descriptor of the process would announce its end, but
/// Tokio takes a foreign descriptor only in `unsafe` code.
const INTERVAL: Duration = Duration::from_secs(3);

/// The process that the params of `initialize` name.
pub(crate) fn id(params: Option<&Params>) -> Option<i32> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Editor {
        process_id: Option<i32>,
    }
    let editor: Editor = params?.as_json().decode().ok()?;
    editor.process_id
}

/// Waits until the process has ended. Never returns on systems that cannot tell.
pub(crate) async fn ended(process: i32) {
    while is_alive(process) {
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(unix)]
fn is_alive(process: i32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    // A process of another user may not be signalled, and is alive.
    Pid::from_raw(process).is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn is_alive(_: i32) -> bool {
    true
}
