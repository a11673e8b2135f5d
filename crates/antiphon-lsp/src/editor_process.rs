//! The process of the editor: its id, and the wait for its end.
//!
//! Only Unix is supported. On other systems, the server ends only with its connection.

use std::time::Duration;

use antiphon::Params;
use serde::Deserialize;

/// The interval between two checks of the process. A pidfd would signal the end of the process, but to register one
/// with Tokio needs `unsafe` code.
const INTERVAL: Duration = Duration::from_secs(3);

/// Returns the `processId` in the params of `initialize`.
pub(crate) fn id(params: Option<&Params>) -> Option<i32> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct EditorProcess {
        process_id: Option<i32>,
    }
    params?.as_json().decode::<EditorProcess>().ok()?.process_id
}

/// Waits until the process has ended. Never returns on systems other than Unix.
pub(crate) async fn ended(process: i32) {
    while is_alive(process) {
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(unix)]
fn is_alive(process: i32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    // EPERM means that the process belongs to another user, so it is alive.
    Pid::from_raw(process).is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn is_alive(_: i32) -> bool {
    true
}
