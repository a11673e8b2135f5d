//! The demonstration service in this process: no socket, and no process of its own.

use std::sync::LazyLock;

use antiphon::Client;
use antiphon::transport::memory::{MemoryTransport, pair};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{Connection, PATIENCE};
use crate::demo;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

pub(crate) struct Memory {
    end: MemoryTransport,
    _served: Client,
}

impl Memory {
    pub(crate) fn connect() -> Self {
        let _inside = RUNTIME.enter();
        let (end, theirs) = pair();
        Self { end, _served: Client::builder().handler(demo::router()).over(theirs) }
    }
}

impl Connection for Memory {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let message = Bytes::copy_from_slice(message);
        RUNTIME.block_on(self.end.send(message)).map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        match RUNTIME.block_on(async { timeout(PATIENCE, self.end.next()).await }) {
            Ok(Some(Ok(message))) => Ok(message.into()),
            Ok(_) => Err("the connection ended".to_owned()),
            Err(_) => Err(format!("nothing came within {PATIENCE:?}")),
        }
    }
}
