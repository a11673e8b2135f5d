//! Output above the edited line, while there is a prompt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{PoisonError, RwLock};

/// The maximum number of notes in the queue, because a terminal may be slower than a server.
const MOST: usize = 1_000;

static PRINTER: RwLock<Option<Sender<Text>>> = RwLock::new(None);
static QUEUED: AtomicUsize = AtomicUsize::new(0);
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// A text to print.
enum Text {
    Note(String),
    Result(String),
}

/// The texts to print, until the printer is removed.
pub(crate) struct PrintQueue(Receiver<Text>);

/// Installs the printer. From now on, output goes to a queue.
pub(crate) fn install() -> PrintQueue {
    let (sender, texts) = channel();
    *PRINTER.write().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    PrintQueue(texts)
}

/// Removes the printer. The queued texts are still printed.
pub(crate) fn remove() {
    *PRINTER.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Returns whether there is a prompt.
pub(crate) fn is_installed() -> bool {
    PRINTER.read().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Queues a note. Drops it if the queue is full. Returns false if there is no prompt.
pub(crate) fn note(text: &str) -> bool {
    let printer = PRINTER.read().unwrap_or_else(PoisonError::into_inner);
    let Some(printer) = &*printer else { return false };
    if QUEUED.load(Ordering::Relaxed) >= MOST {
        SKIPPED.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    QUEUED.fetch_add(1, Ordering::Relaxed);
    printer.send(Text::Note(text.to_owned())).is_ok()
}

/// Queues a result. Results are never dropped, because each line has at most one. Returns false if there is no prompt.
pub(crate) fn result(text: &str) -> bool {
    let printer = PRINTER.read().unwrap_or_else(PoisonError::into_inner);
    printer.as_ref().is_some_and(|printer| printer.send(Text::Result(text.to_owned())).is_ok())
}

impl Iterator for PrintQueue {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = match self.0.recv().ok()? {
            Text::Result(text) => return Some(text),
            Text::Note(text) => text,
        };
        QUEUED.fetch_sub(1, Ordering::Relaxed);
        Some(match SKIPPED.swap(0, Ordering::Relaxed) {
            0 => text,
            count => format!("{text}\n({count} more messages are not shown)"),
        })
    }
}
