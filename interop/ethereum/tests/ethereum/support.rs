//! A toy node on every wire, and processes that end with their test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use antiphon::{Client, Dialect, Server};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("the other side answers in time")
}

/// A toy node in this process.
pub(crate) struct ToyNode {
    pub(crate) http: String,
    pub(crate) ws: String,
    pub(crate) ipc: PathBuf,
    /// Mines blocks, and cuts connections.
    pub(crate) control: Client,
    _folder: Folder,
}

impl ToyNode {
    pub(crate) async fn start() -> Self {
        let folder = Folder::new();
        let ipc = folder.0.join("node.ipc");
        let server = Server::bind("http://127.0.0.1:0").await.unwrap();
        let server = server.and(&*format!("unix:{}", ipc.display())).await.unwrap();
        let endpoint = server.endpoint().clone();
        tokio::spawn(server.dialect(Dialect::ethereum()).serve(interop_ethereum::node()));
        let control = Client::connect(&endpoint).await.unwrap();
        let (http, ws) = (endpoint.to_string(), endpoint.as_ws().to_string());
        Self { http, ws, ipc, control, _folder: folder }
    }

    /// Adds a block. Returns its number.
    pub(crate) async fn mine(&self) -> String {
        self.control.call("evm_mine", ()).await.unwrap()
    }
}

/// A temporary folder, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "antiphon-ethereum-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a path in `interop`. Fails if it is not there, and names the remedy.
pub(crate) fn part(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    assert!(path.exists(), "{} is missing: run interop/setup", path.display());
    path
}

/// Returns a port for a program that takes no 0.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a program, and waits for a line with this text on its stdout. It is killed when it is dropped.
pub(crate) async fn started(mut command: Command, ready: &str) -> (Child, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the program starts");
            if line.contains(ready) {
                return line;
            }
        }
    });
    let line = line.await;
    // A full pipe would block the program.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, line)
}
