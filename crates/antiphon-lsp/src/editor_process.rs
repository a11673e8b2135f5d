//! The process of the editor: its id, and a future that waits until it ends.
//!
//! Only a process that was seen alive is watched: an editor in another container or on another machine has an id that
//! means nothing here. Only Unix is supported. On other systems, the server ends only with its connection.

use std::time::Duration;

use antiphon::Params;
use serde::Deserialize;

/// The interval between two checks of the process. A pidfd would signal the end of the process, but registering it with
/// Tokio needs `unsafe` code.
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

/// Waits until a process that is alive has ended. Never returns on systems other than Unix.
pub(crate) async fn ended(process: i32) {
    while is_alive(process) {
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Whether a process with this id exists in this process's namespace.
#[cfg(unix)]
pub(crate) fn is_alive(process: i32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    // A negative id would name a group of processes.
    let pid = Some(process).filter(|process| *process > 0).and_then(Pid::from_raw);
    // EPERM means that the process belongs to another user, so it is alive.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH) && !is_zombie(process))
}

/// Whether the process has ended, but its parent has not read its status. Only Linux tells.
#[cfg(unix)]
fn is_zombie(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the name of the program, which is in parentheses and may contain any character.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
}

#[cfg(not(unix))]
pub(crate) fn is_alive(_: i32) -> bool {
    true
}
