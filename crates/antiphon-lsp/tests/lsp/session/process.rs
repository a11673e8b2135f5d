//! The process of a server: it fails to start, ends too early, fails at its end, or does not end.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use antiphon::ErrorChain;
use antiphon_lsp::{ServerSession, ShutdownError, StartError};

use crate::support::Silent;

/// A server in `sh` that answers each request with an empty result, and runs these commands at `exit`. It
/// keeps `ended` open while it runs.
const SERVER: &str = r#"
exec 9>"$1"
while IFS= read -r header; do
    length=$(printf %s "$header" | tr -cd 0-9)
    IFS= read -r _
    body=$(dd bs=1 count="$length" 2>/dev/null)
    case $body in
        *'"method":"exit"'*) eval "$2" ;;
        *'"id":'*)
            id=$(printf %s "$body" | sed 's/.*"id":\([0-9]*\).*/\1/')
            answer='{"jsonrpc":"2.0","id":'$id',"result":{"capabilities":{}}}'
            printf 'Content-Length: %d\r\n\r\n%s' "${#answer}" "$answer" ;;
    esac
done
"#;

/// A named pipe whose writer is the server: it ends with the server.
struct Ended(PathBuf);

impl Ended {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("antiphon-lsp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    /// Waits until the server has ended. Its start waits for this reader.
    fn watch(&self) -> tokio::task::JoinHandle<()> {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || {
            let mut pipe = File::open(path).unwrap();
            assert_eq!(pipe.read_to_end(&mut Vec::new()).unwrap(), 0);
        })
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn endpoint(ended: &Path, at_exit: &str) -> antiphon::Endpoint {
    let command = ["sh", "-c", SERVER, "server"].map(str::to_owned).into_iter();
    let command = command.chain([ended.display().to_string(), at_exit.to_owned()]).collect();
    antiphon::Endpoint::Exec { command, framing: None }
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let error = ServerSession::builder().start("exec+header:no-such-server --x", Silent).await;
    let error = error.unwrap_err();
    let shown = ErrorChain(&error).to_string();
    assert!(matches!(error, StartError::Spawn { .. }), "{shown}");
    assert!(shown.starts_with("cannot start the language server exec+header:no-such-server"));
    assert!(shown.contains("on the PATH"), "{shown}");
    let error = ServerSession::builder().start("clangd", Silent).await.unwrap_err();
    assert!(matches!(error, StartError::Endpoint(_)), "{error:?}");
    assert!(ErrorChain(&error).to_string().contains("exec+header:clangd"), "{error}");
}

#[tokio::test]
async fn a_server_that_ends_at_once_tells_its_status() {
    let command = ["sh", "-c", "exit 3"].map(str::to_owned).to_vec();
    let endpoint = antiphon::Endpoint::Exec { command, framing: None };
    let error = ServerSession::builder().start(endpoint, Silent).await.unwrap_err();
    let shown = ErrorChain(&error).to_string();
    assert!(matches!(error, StartError::Ended { .. }), "{error:?}");
    assert!(shown.contains("exited with status 3"), "{shown}");
}

#[tokio::test]
async fn a_failure_at_exit_is_told() {
    let ended = Ended::new("failure");
    let watched = ended.watch();
    let session = ServerSession::builder().start(endpoint(&ended.0, "exit 4"), Silent);
    let error = session.await.unwrap().shutdown().await.unwrap_err();
    assert!(matches!(error, ShutdownError::Failed { .. }), "{error:?}");
    assert!(ErrorChain(&error).to_string().contains("exited with status 4"), "{error:?}");
    watched.await.unwrap();
}

#[tokio::test]
async fn a_process_that_stays_is_stopped() {
    let ended = Ended::new("stays");
    let watched = ended.watch();
    let settings = ServerSession::builder().shutdown_timeout(Duration::from_millis(100));
    let session = settings.start(endpoint(&ended.0, "exec sleep 1000"), Silent).await.unwrap();
    let error = session.shutdown().await.unwrap_err();
    assert!(matches!(error, ShutdownError::StillRunning { .. }), "{error:?}");
    watched.await.unwrap();
}

#[tokio::test]
async fn the_process_of_a_dropped_session_ends() {
    let ended = Ended::new("dropped");
    let watched = ended.watch();
    let session = ServerSession::builder().start(endpoint(&ended.0, "exit 0"), Silent);
    drop(session.await.unwrap());
    watched.await.unwrap();
}
