//! Conversion between file paths and `file:` URIs.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::types::Uri;

/// Returns the `file:` URI of a path. A relative path starts at the current directory. Bytes other than ASCII letters,
/// digits, `-`, `.`, `_`, `~` and `/` are percent-encoded.
///
/// # Errors
/// Fails if the path is empty, if there is no current directory, or, on systems other than Unix, if the path is
/// not Unicode.
///
/// ```
/// # #[cfg(unix)] {
/// assert_eq!(antiphon_lsp::file_uri("/home/me/a b.c").unwrap().0, "file:///home/me/a%20b.c");
/// # }
/// ```
pub fn file_uri(path: impl AsRef<Path>) -> io::Result<Uri> {
    let path = std::path::absolute(path)?;
    let mut uri = "file://".to_owned();
    for byte in uri_path(&path)? {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    Ok(Uri(uri))
}

/// Returns the path of a `file:` URI. Returns `None` for any other URI, and for a `file:` URI with a host other than
/// `localhost`.
///
/// ```
/// # #[cfg(unix)] {
/// use std::path::Path;
///
/// let path = antiphon_lsp::file_path(&"file:///home/me/a%20b.c".into());
/// assert_eq!(path.as_deref(), Some(Path::new("/home/me/a b.c")));
/// # }
/// ```
pub fn file_path(uri: &Uri) -> Option<PathBuf> {
    let path = uri.0.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    path.starts_with('/').then(|| decoded(path)).flatten().and_then(system_path)
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit =
            || char::from(bytes.next()?).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let (high, low) = (digit()?, digit()?);
        out.push(high << 4 | low);
    }
    Some(out)
}

#[cfg(unix)]
fn uri_path(path: &Path) -> io::Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(path.as_os_str().as_bytes().to_vec())
}

#[cfg(unix)]
fn system_path(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// `C:\a` becomes `/C:/a`.
#[cfg(not(unix))]
fn uri_path(path: &Path) -> io::Result<Vec<u8>> {
    let not_unicode = || {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not Unicode", path.display()))
    };
    let path = path.to_str().ok_or_else(not_unicode)?.replace('\\', "/");
    Ok(format!("/{}", path.trim_start_matches('/')).into_bytes())
}

#[cfg(not(unix))]
fn system_path(bytes: Vec<u8>) -> Option<PathBuf> {
    let path = String::from_utf8(bytes).ok()?;
    let is_drive = path.as_bytes().get(2) == Some(&b':');
    Some(if is_drive { path[1..].into() } else { path.into() })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        let mut names: Vec<Vec<u8>> = (1..=255_u8).map(|byte| vec![b'/', byte]).collect();
        names.extend(["/", "/ä/%41/日本", "/a/../b"].map(|name| name.as_bytes().to_vec()));
        for name in names {
            let path = system_path(name).unwrap();
            let uri = file_uri(&path).unwrap();
            assert!(uri.0.is_ascii() && !uri.0.contains(' '), "{}", uri.0);
            assert_eq!(file_path(&uri), Some(path));
        }
    }

    #[test]
    fn what_is_not_a_file_has_no_path() {
        for uri in
            ["untitled:a", "file://host/a", "file:a", "file:///%4", "file:///%g1", "file:///%+1"]
        {
            assert_eq!(file_path(&uri.into()), None, "{uri}");
        }
        assert_eq!(file_path(&"file://localhost/a".into()), Some("/a".into()));
        assert!(file_uri("").is_err());
        assert!(file_uri("a").unwrap().0.ends_with("/a"));
    }
}
