//! Tokens in files that only the user can read.
//!
//! Each key has its own file, so that programs with different servers do not overwrite each other's values. The name is
//! a digest of the key. A file is written beside its target and then renamed, so a reader sees the old or the new value.
//! The mode is set when a file is created, never afterwards.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use antiphon::BoxFuture;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{TokenStore, TokenStoreError};
use crate::auth::Secret;

/// The maximum size of a file in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Keeps values in files of one directory, which it creates if necessary.
///
/// On Unix, the directory has mode 0700 and each file 0600, and a directory or file that other users can access is
/// refused. On other systems, protect the directory yourself.
#[derive(Clone, Debug)]
pub struct FileTokenStore {
    directory: PathBuf,
}

impl FileTokenStore {
    /// Uses this directory. Use it for nothing else.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn path(&self, key: &str) -> PathBuf {
        let name = BASE64.encode(digest(&SHA256, key.as_bytes()));
        self.directory.join(format!("{name}.json"))
    }
}

impl TokenStore for FileTokenStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        let path = self.path(key);
        Box::pin(blocking(move || load(&path)))
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let (directory, path, value) = (self.directory.clone(), self.path(key), value.clone());
        Box::pin(blocking(move || save(&directory, &path, &value)))
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let path = self.path(key);
        Box::pin(blocking(move || match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TokenStoreError> + Send + 'static,
) -> Result<T, TokenStoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(TokenStoreError::Other(error.to_string())))
}

fn load(path: &Path) -> Result<Option<Secret>, TokenStoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    // The open file is checked, and not the path, which could change in between.
    check_private(&file.metadata().map_err(failed("inspect", path))?, path)?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed("read", path))?;
    Ok(Some(Secret::new(text)))
}

fn save(directory: &Path, path: &Path, value: &Secret) -> Result<(), TokenStoreError> {
    create_directory(directory).map_err(failed("create the directory of", path))?;
    let metadata = fs::metadata(directory).map_err(failed("inspect the directory of", path))?;
    check_private(&metadata, directory)?;
    let mut suffix = [0; 8];
    let random = SystemRandom::new().fill(&mut suffix);
    random.map_err(|_| TokenStoreError::Other("the system has no randomness".to_owned()))?;
    let temporary = path.with_extension(BASE64.encode(suffix));
    let written = write_new(&temporary, value).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed("write", path)(error)
    })
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, value: &Secret) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(value.expose().as_bytes())?;
    file.sync_all()
}

fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn check_private(metadata: &fs::Metadata, path: &Path) -> Result<(), TokenStoreError> {
    use std::os::unix::fs::MetadataExt as _;
    if metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(TokenStoreError::Exposed { path: path.to_owned() })
}

#[cfg(not(unix))]
fn check_private(_: &fs::Metadata, _: &Path) -> Result<(), TokenStoreError> {
    Ok(())
}

fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> TokenStoreError + 'a {
    move |source| TokenStoreError::File { action, path: path.to_owned(), source }
}
