//! Output above the edited line, while there is a prompt.
//!
//! Messages from the server are bounded, because a terminal may be slower than a server. Other output is never dropped,
//! because the lines that the user types cause it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// The maximum number of messages in the queue.
const MOST: usize = 1_000;

/// The maximum total size of the messages in the queue. A message of any size is queued if there is no other.
const MOST_BYTES: usize = 16 << 20;

static PRINTER: RwLock<Option<Sender<Text>>> = RwLock::new(None);
static QUEUED: Mutex<QueuedMessages> = Mutex::new(QueuedMessages::EMPTY);

/// A text to print.
enum Text {
    /// A message from the server, or one that was sent to it.
    Message(String),
    /// A result, an error or a note.
    Output(String),
}

/// The messages in the queue.
struct QueuedMessages {
    count: usize,
    bytes: usize,
    /// The number of messages that were dropped since one was printed.
    dropped: usize,
}

impl QueuedMessages {
    const EMPTY: Self = Self { count: 0, bytes: 0, dropped: 0 };

    /// Counts a message of this size. Returns false if it must be dropped.
    fn add(&mut self, bytes: usize) -> bool {
        let fits = self.count < MOST && self.bytes.saturating_add(bytes) <= MOST_BYTES;
        if !fits && self.count > 0 {
            self.dropped += 1;
            return false;
        }
        self.count += 1;
        self.bytes += bytes;
        true
    }

    /// Removes a message of this size. Returns the number of messages that were dropped meanwhile.
    fn remove(&mut self, bytes: usize) -> usize {
        self.count -= 1;
        self.bytes -= bytes;
        std::mem::take(&mut self.dropped)
    }
}

fn queued() -> MutexGuard<'static, QueuedMessages> {
    QUEUED.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Queues a message. Drops it if the queue is full. Returns false if there is no prompt.
pub(crate) fn message(text: &str) -> bool {
    let printer = PRINTER.read().unwrap_or_else(PoisonError::into_inner);
    let Some(printer) = &*printer else { return false };
    if !queued().add(text.len()) {
        return true;
    }
    printer.send(Text::Message(text.to_owned())).is_ok()
}

/// Queues other output. Returns false if there is no prompt.
pub(crate) fn output(text: &str) -> bool {
    let printer = PRINTER.read().unwrap_or_else(PoisonError::into_inner);
    printer.as_ref().is_some_and(|printer| printer.send(Text::Output(text.to_owned())).is_ok())
}

impl Iterator for PrintQueue {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = match self.0.recv().ok()? {
            Text::Output(text) => return Some(text),
            Text::Message(text) => text,
        };
        Some(match queued().remove(text.len()) {
            0 => text,
            count => format!("{text}\n({count} more messages are not shown)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_by_their_count_and_their_size() {
        let mut queued = QueuedMessages::EMPTY;
        assert_eq!((0..MOST + 5).filter(|_| queued.add(1)).count(), MOST);
        assert_eq!((queued.remove(1), queued.remove(1)), (5, 0));
        let mut queued = QueuedMessages::EMPTY;
        assert!(queued.add(MOST_BYTES - 1) && queued.add(1) && !queued.add(1));
        assert_eq!((queued.remove(MOST_BYTES - 1), queued.remove(1)), (1, 0));
        assert!(queued.add(2 * MOST_BYTES) && !queued.add(1));
        assert_eq!((queued.remove(2 * MOST_BYTES), queued.bytes), (1, 0));
    }
}
