//! The limits of tasks.

use std::time::Duration;

/// The shortest time to live, so that a client has a chance to see its task.
const MIN_TTL: Duration = Duration::from_secs(1);

/// The limits of tasks.
///
/// ```
/// use std::time::Duration;
///
/// use antiphon_mcp::{McpServer, TaskSettings};
///
/// let tasks = TaskSettings::new().ttl(Duration::from_secs(600)).max_running(20);
/// let server = McpServer::builder("example", "1.0.0").tasks(tasks).build();
/// # drop(server);
/// ```
#[derive(Clone, Debug)]
pub struct TaskSettings {
    pub(super) ttl: Duration,
    pub(super) max_ttl: Duration,
    pub(super) poll_interval: Duration,
    pub(super) max_tasks: usize,
    pub(super) max_running: usize,
    pub(super) running_per_caller: usize,
    pub(super) max_bytes: usize,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60 * 60),
            max_ttl: Duration::from_secs(24 * 60 * 60),
            poll_interval: Duration::from_secs(1),
            max_tasks: 10_000,
            max_running: 1_000,
            running_per_caller: 100,
            max_bytes: 64 << 20,
        }
    }
}

impl TaskSettings {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a task exists after its creation, unless its client asks for another time. The default is one
    /// hour. A handler that still runs then is ended, and the result is forgotten.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the longest time to live that a legacy client can ask for. The default is one day. The shortest is one
    /// second.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets the interval in which clients should ask for the state of a task. The default is one second.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets the largest number of tasks, running or finished. The default is 10,000. Beyond this limit and the next two,
    /// the call of a modern client runs without a task if its task is optional. Other calls fail with -32009.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets the largest number of tasks that run at the same time. The default is 1,000.
    #[must_use]
    pub fn max_running(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }

    /// Sets how many tasks of one caller run at the same time. The default is 100. A caller is an identity or a legacy
    /// session. Modern callers without an identity cannot be distinguished, so only the limit of all tasks
    /// applies to them.
    #[must_use]
    pub fn running_per_caller(mut self, tasks: usize) -> Self {
        self.running_per_caller = tasks;
        self
    }

    /// Sets how many bytes the results of all tasks may take. The default is 64 MiB. A task whose result does not fit
    /// fails.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The time to live of a task whose client asks for `wanted`.
    pub(super) fn ttl_of(&self, wanted: Option<Duration>) -> Duration {
        match wanted {
            Some(wanted) => wanted.min(self.max_ttl).max(MIN_TTL),
            None => self.ttl,
        }
    }
}
