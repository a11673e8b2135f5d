//! Unix domain sockets.
//!
//! A listener replaces a stale socket file of a server that has died. It does not replace a socket that
//! is in use, and it never touches a file that is not a socket.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A listener that removes its file when it is dropped.
pub(crate) struct UnixSocket {
    pub(crate) socket: UnixListener,
    path: PathBuf,
    file: Option<FileId>,
}

/// Device and inode, which distinguish our file from a later one at the same path.
type FileId = (u64, u64);

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == socket_at(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A socket that was bound elsewhere: its file is not removed here.
impl From<UnixListener> for UnixSocket {
    fn from(socket: UnixListener) -> Self {
        Self { socket, path: PathBuf::new(), file: None }
    }
}

/// Listens on a path.
pub(crate) async fn listen(path: &Path) -> io::Result<UnixSocket> {
    let socket = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        other => other?,
    };
    Ok(UnixSocket { socket, path: path.to_owned(), file: socket_at(path) })
}

fn socket_at(path: &Path) -> Option<FileId> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| (found.dev(), found.ino()))
}

/// Whether no server listens on this socket file. A connection to another kind of file is also refused,
/// so the kind is checked first.
async fn is_stale(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    socket_at(path).is_some() && UnixStream::connect(path).await.is_err_and(refused)
}
