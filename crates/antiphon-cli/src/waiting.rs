//! A line on the terminal while a call takes long, gone when it is done.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::{Instant, interval};

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
    let start = Instant::now();
    let mut drawn = false;
    loop {
        tokio::select! {
            done = &mut work => {
                if drawn {
                    output::draw("\r\x1b[K");
                }
                return done;
            }
            _ = ticks.tick() => {
                let text = format!("waiting for {what}, {}s", start.elapsed().as_secs());
                output::draw(&format!("\r\x1b[K{}", output::dim(&text)));
                drawn = true;
            }
        }
    }
}
