//! A progress line on the terminal during a slow call. It is erased when the call ends.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::interval;

use crate::{output, prompt_printer};

const SECOND: Duration = Duration::from_secs(1);

/// Awaits `work`. On a terminal, shows a progress line after the first second.
pub(crate) async fn with_waiting_line<T>(what: &str, work: impl Future<Output = T>) -> T {
    // A prompt shows that the session is alive.
    if !io::stderr().is_terminal() || prompt_printer::is_installed() {
        return work.await;
    }
    let mut work = Box::pin(work);
    let mut ticks = interval(SECOND);
    ticks.tick().await;
    let mut seconds = 0;
    loop {
        tokio::select! {
            done = &mut work => {
                if seconds > 0 {
                    output::draw("\r\x1b[K");
                }
                return done;
            }
            _ = ticks.tick() => {
                seconds += 1;
                let text = format!("waiting for {what}, {seconds}s");
                output::draw(&format!("\r\x1b[K{}", output::dim(&text)));
            }
        }
    }
}
