//! An authorization server, an MCP server, and plain HTTP between them.

pub(crate) mod authorization_server;
pub(crate) mod http;
pub(crate) mod keys;
pub(crate) mod mcp_server;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that is removed at the end of a test.
pub(crate) struct TemporaryDirectory(pub(crate) PathBuf);

impl TemporaryDirectory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("antiphon-auth-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
