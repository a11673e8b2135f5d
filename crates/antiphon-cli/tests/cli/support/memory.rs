//! The demonstration service on the in-process transport. Other processes reach it through a socket
//! that forwards each message.

use std::path::{Path, PathBuf};

use antiphon::Client;
use antiphon::transport::memory::pair;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;

use super::Scratch;
use crate::demo;

/// A socket with `header` framing that forwards to the service.
pub(crate) struct Memory {
    path: PathBuf,
    _scratch: Scratch,
    _runtime: Runtime,
}

impl Memory {
    pub(crate) fn start() -> Self {
        let (scratch, runtime) = (Scratch::new(), Runtime::new().unwrap());
        let path = scratch.path("memory.sock");
        let _inside = runtime.enter();
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(pass_on(socket));
            }
        });
        drop(_inside);
        Self { path, _scratch: scratch, _runtime: runtime }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Forwards messages in both directions until one side ends.
async fn pass_on(socket: UnixStream) {
    let (ours, theirs) = pair();
    let _served = Client::builder().handler(demo::router()).over(theirs);
    let (mut to_service, mut from_service) = ours.split();
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    let forth = async {
        while let Some(message) = message(&mut reader).await {
            if to_service.send(message).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        while let Some(Ok(message)) = from_service.next().await {
            let head = format!("Content-Length: {}\r\n\r\n", message.len());
            let framed = [head.as_bytes(), &message].concat();
            if writer.write_all(&framed).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}

async fn message(reader: &mut BufReader<impl tokio::io::AsyncRead + Unpin>) -> Option<Bytes> {
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", digits)) => length = digits.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).await.ok()?;
    Some(body.into())
}
