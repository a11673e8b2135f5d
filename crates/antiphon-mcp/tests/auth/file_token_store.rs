//! Tokens in files.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use antiphon_mcp::auth::Secret;
use antiphon_mcp::auth::client::{FileTokenStore, TokenStore as _, TokenStoreError};

use crate::support::TemporaryDirectory;

fn files(directory: &TemporaryDirectory) -> Vec<PathBuf> {
    fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_user_can_access_the_files() {
    let directory = TemporaryDirectory::new();
    let store = FileTokenStore::new(&directory.0);
    store.save("a", &Secret::new("first")).await.unwrap();
    store.save("a", &Secret::new("second")).await.unwrap();
    store.save("b", &Secret::new("other")).await.unwrap();
    assert_eq!(store.load("a").await.unwrap(), Some(Secret::new("second")));
    assert_eq!(mode(&directory.0), 0o700);
    let files = files(&directory);
    assert_eq!(files.len(), 2, "temporary files stay behind: {files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600));

    store.remove("a").await.unwrap();
    store.remove("a").await.unwrap();
    assert_eq!(store.load("a").await.unwrap(), None);
    assert_eq!(store.load("b").await.unwrap(), Some(Secret::new("other")));
}

#[tokio::test]
async fn files_that_others_can_access_are_refused() {
    let directory = TemporaryDirectory::new();
    let store = FileTokenStore::new(&directory.0);
    store.save("a", &Secret::new("hush")).await.unwrap();
    let file = &files(&directory)[0];
    for exposed in [0o640, 0o604, 0o620] {
        fs::set_permissions(file, fs::Permissions::from_mode(exposed)).unwrap();
        let error = store.load("a").await.unwrap_err();
        assert!(matches!(error, TokenStoreError::Exposed { .. }), "{exposed:o}: {error}");
        assert!(error.to_string().contains("chmod go="), "{error}");
    }
    // Saving replaces the exposed file by a private one.
    store.save("a", &Secret::new("hush")).await.unwrap();
    assert_eq!(store.load("a").await.unwrap(), Some(Secret::new("hush")));

    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o755)).unwrap();
    let error = store.save("a", &Secret::new("hush")).await.unwrap_err();
    assert!(matches!(error, TokenStoreError::Exposed { .. }), "{error}");
}
