//! A progress line on the terminal during a slow call. It is erased when the call ends.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::interval;

use crate::{output, prompt_printer};

const SECOND: Duration = Duration::from_secs(1);

/// The line of this process. There is one terminal.
static LINE: Mutex<Line> = Mutex::new(Line { is_shown: false, hidden: 0 });

struct Line {
    is_shown: bool,
    /// How many questions have the terminal for themselves.
    hidden: usize,
}

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
                erase();
                return done;
            }
            _ = ticks.tick() => {
                seconds += 1;
                line().show(&format!("waiting for {what}, {seconds}s"));
            }
        }
    }
}

/// Erases the progress line, so that another text takes its place.
pub(crate) fn erase() {
    line().erase();
}

/// Hides the progress line while the user is asked.
pub(crate) struct Hidden(());

impl Hidden {
    pub(crate) fn new() -> Self {
        let mut line = line();
        line.erase();
        line.hidden += 1;
        Self(())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        line().hidden -= 1;
    }
}

impl Line {
    fn show(&mut self, text: &str) {
        if self.hidden == 0 {
            output::draw(&format!("\r\x1b[K{}", output::dim(text)));
            self.is_shown = true;
        }
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            output::draw("\r\x1b[K");
        }
    }
}

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
