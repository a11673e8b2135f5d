//! Clients of Bitcoin nodes against a toy node, in each mode of the node.

mod bitcoincore_rpc;
#[allow(deprecated, reason = "0.18 points to a crate for test networks")]
mod corepc_client;
mod python_bitcoinrpc;

use std::path::{Path, PathBuf};

/// A cookie file of the toy node. It is removed when it is dropped.
struct Cookie(PathBuf);

impl Cookie {
    fn write(name: &str) -> Self {
        use interop_bitcoin::ToyNode;
        let path = std::env::temp_dir().join(format!("antiphon-{name}-{}", std::process::id()));
        let text = format!("{}:{}", ToyNode::USER, ToyNode::PASSWORD);
        std::fs::write(&path, text).expect("the temporary folder is writable");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Cookie {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
