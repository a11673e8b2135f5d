//! A line on the terminal while a call takes long, gone when it is done.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::interval;

use crate::output;

const SECOND: Duration = Duration::from_secs(1);

/// Does the work; after a second of it, says on a terminal what is waited for.
pub(crate) async fn shown<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
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
