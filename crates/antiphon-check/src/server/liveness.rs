//! Makes sure that the server still replies, before a finding is final.
//!
//! The run restarts a crashed server that `--spawn` started, and waits a while for any other server. If the server
//! does not come back, the run ends, and the remaining cases are not run.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::suite_run::SuiteRun;

/// The time for a server to come back.
const COMEBACK: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

impl SuiteRun {
    /// Makes sure that the server replies. The error describes a crash, even if the server is back.
    pub(super) async fn ensure_alive(&mut self) -> Result<(), String> {
        if self.is_child() {
            // The next connection starts a new process.
            return Ok(());
        }
        if let Some(server) = &mut self.server
            && let Some(ended) = server.ended().await
        {
            return self.restart(ended).await;
        }
        let Err(fault) = self.server_access.is_alive(&self.methods).await else { return Ok(()) };
        if self.server.is_some() {
            return self.restart(format!("the server no longer replies: {fault}")).await;
        }
        let deadline = Instant::now() + COMEBACK;
        while Instant::now() < deadline {
            sleep(STEP).await;
            if self.server_access.is_alive(&self.methods).await.is_ok() {
                return Err(format!("the server was unreachable for a while: {fault}"));
            }
        }
        self.is_gone = true;
        self.stop_reason =
            Some("the server no longer accepts connections; --spawn restarts it".to_owned());
        Err(format!("the server is gone: {fault}"))
    }

    async fn restart(&mut self, how: String) -> Result<(), String> {
        let Some(server) = &mut self.server else { return Err(how) };
        if let Err(failure) = server.restart(&self.server_access).await {
            self.is_gone = true;
            self.stop_reason = Some(format!("the server did not restart: {failure}"));
        }
        Err(how)
    }
}
