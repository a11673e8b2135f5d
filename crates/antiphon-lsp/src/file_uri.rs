//! Conversion between file paths and `file:` URIs, and the comparison of document URIs.
//!
//! It never reads the file system.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::types::Uri;

/// Returns the `file:` URI of a path. A relative path starts at the current directory. Bytes other than ASCII letters,
/// digits, `-`, `.`, `_`, `~` and `/` are percent-encoded, as in VS Code.
///
/// The file system is not read: `link/../a` becomes `a`, even if `link` is a symbolic link to a directory. Many servers
/// remove `.` and `..` from a URI, so a URI that contains them would change.
///
/// On Windows, `\\server\share\a` becomes `file://server/share/a`, and the prefix `\\?\` is removed.
///
/// # Errors
/// Fails if the path is empty, if there is no current directory, or, on systems other than Unix, if the path is not
/// Unicode or begins with neither a drive nor a server.
///
/// ```
/// # #[cfg(unix)] {
/// assert_eq!(antiphon_lsp::file_uri("/home/me/a b.c").unwrap().0, "file:///home/me/a%20b.c");
/// # }
/// ```
pub fn file_uri(path: impl AsRef<Path>) -> io::Result<Uri> {
    let FileLocation { host, path } = location(&std::path::absolute(path)?)?;
    let (host, path) = (encoded(host.as_bytes()), encoded(&without_dot_segments(&path)));
    Ok(Uri(format!("file://{host}{path}")))
}

/// Returns the path of a `file:` URI. Returns `None` for any other URI. On Unix, also returns `None` for a `file:` URI
/// with a host other than `localhost`.
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
    system_path(FileLocation::parse(&uri.0)?)
}

/// The normal form of a document URI. Two URIs with the same key name the same document.
///
/// A server may write the URI of a document in another way than its client: VS Code sends `file:///c%3A/a%2Bb.c`, and
/// clangd publishes diagnostics for `file:///c:/a%2Bb.c`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DocumentKey {
    File(FileLocation),
    /// The text of a URI with another scheme, or of an invalid one.
    Other(String),
}

impl DocumentKey {
    pub(crate) fn new(uri: &Uri) -> Self {
        let Some(FileLocation { host, path }) = FileLocation::parse(&uri.0) else {
            return Self::Other(uri.0.clone());
        };
        let mut path = without_dot_segments(&path);
        if has_drive(&path[1..]) {
            path[1].make_ascii_lowercase();
        }
        Self::File(FileLocation { host, path })
    }
}

/// The host and the path of a `file:` URI, decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileLocation {
    /// Empty for this machine.
    host: String,
    /// Begins with `/`.
    path: Vec<u8>,
}

impl FileLocation {
    fn parse(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_at_checked("file:".len())?;
        if !scheme.eq_ignore_ascii_case("file:") {
            return None;
        }
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/')?),
            // The short form of RFC 8089, which Java uses.
            None => ("", rest),
        };
        let mut host = String::from_utf8(decoded(host)?).ok()?.to_ascii_lowercase();
        if host == "localhost" {
            host.clear();
        }
        let path = decoded(path)?;
        path.starts_with(b"/").then_some(Self { host, path })
    }

    /// Splits an absolute path of Windows. Returns `None` for a device and for a volume without a drive.
    #[cfg(any(not(unix), test))]
    fn from_windows(path: &str) -> Option<Self> {
        let verbatim = path.strip_prefix(r"\\?\");
        let share = match verbatim {
            Some(rest) => rest.strip_prefix(r"UNC\"),
            None => path.strip_prefix(r"\\").filter(|rest| !rest.starts_with(r".\")),
        };
        let (host, path) = match share {
            Some(share) => share.split_once('\\').unwrap_or((share, "")),
            None => ("", verbatim.unwrap_or(path)),
        };
        let path_of_uri = format!("/{}", path.replace('\\', "/")).into_bytes();
        (share.is_some() || has_drive(path.as_bytes()))
            .then(|| Self { host: host.to_owned(), path: path_of_uri })
    }

    /// Returns `C:\a`, or `\\server\share\a`.
    #[cfg(any(not(unix), test))]
    fn into_windows(self) -> Option<String> {
        let path = String::from_utf8(self.path).ok()?.replace('/', "\\");
        Some(match &*self.host {
            "" if has_drive(&path.as_bytes()[1..]) => path[1..].to_owned(),
            "" => path,
            host => format!(r"\\{host}{path}"),
        })
    }
}

/// Whether a path without its first separator begins with a drive, such as `C:`.
fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', rest @ ..]
        if letter.is_ascii_alphabetic() && matches!(rest, [] | [b'/' | b'\\', ..]))
}

/// Removes the segments `.` and `..` of a path that begins with `/` (RFC 3986, section 5.2.4).
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut segments = Vec::new();
    for segment in path[1..].split(|&byte| byte == b'/') {
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    [b"/", &*segments.join(&b'/')].concat()
}

/// Percent-encodes bytes, except `/`.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            other => {
                let _ = write!(text, "%{other:02X}");
            }
        }
    }
    text
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
#[allow(clippy::unnecessary_wraps, reason = "it fails on other systems")]
fn location(path: &Path) -> io::Result<FileLocation> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(FileLocation { host: String::new(), path: path.as_os_str().as_bytes().to_vec() })
}

#[cfg(unix)]
fn system_path(location: FileLocation) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    location.host.is_empty().then(|| std::ffi::OsString::from_vec(location.path).into())
}

#[cfg(not(unix))]
fn location(path: &Path) -> io::Result<FileLocation> {
    let invalid = |reason: &str| {
        let message = format!("{} has no URI: {reason}", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let text = path.to_str().ok_or_else(|| invalid("it is not Unicode"))?;
    FileLocation::from_windows(text).ok_or_else(|| invalid("use a path with a drive or a server"))
}

#[cfg(not(unix))]
fn system_path(location: FileLocation) -> Option<PathBuf> {
    location.into_windows().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_path_comes_back() {
        let mut names: Vec<Vec<u8>> = (1..=255_u8).map(|byte| vec![b'/', byte]).collect();
        names.extend(["/", "/ä/%41/日本", "/a//b", "/a/"].map(|name| name.as_bytes().to_vec()));
        for path in names {
            let path = system_path(FileLocation { host: String::new(), path }).unwrap();
            let uri = file_uri(&path).unwrap();
            assert!(uri.0.is_ascii() && !uri.0.contains(' '), "{}", uri.0);
            assert_eq!(file_path(&uri), Some(path));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_uri_has_no_dot_segments() {
        let here = file_uri("a").unwrap();
        for (path, expected) in [
            ("/a/../b", "file:///b"),
            ("/a/b/..", "file:///a"),
            ("/a/./b/", "file:///a/b/"),
            ("/../..", "file:///"),
            ("/a/...", "file:///a/..."),
            ("./b/../a", &*here.0),
        ] {
            assert_eq!(file_uri(path).unwrap().0, expected, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_file_has_no_path() {
        for uri in
            ["untitled:a", "file://host/a", "file:a", "file:///%4", "file:///%g1", "file:///%+1"]
        {
            assert_eq!(file_path(&uri.into()), None, "{uri}");
        }
        for uri in ["file://localhost/a", "file:/a", "FILE:///%61"] {
            assert_eq!(file_path(&uri.into()), Some("/a".into()), "{uri}");
        }
        assert!(file_uri("").is_err());
        assert!(file_uri("a").unwrap().0.ends_with("/a"));
    }

    #[test]
    fn paths_of_windows() {
        for (path, uri, back) in [
            (r"C:\a b\c", "file:///C%3A/a%20b/c", r"C:\a b\c"),
            (r"C:\", "file:///C%3A/", r"C:\"),
            (r"\\server\share\a", "file://server/share/a", r"\\server\share\a"),
            (r"\\wsl$\Ubuntu\home", "file://wsl%24/Ubuntu/home", r"\\wsl$\Ubuntu\home"),
            (r"\\?\C:\a", "file:///C%3A/a", r"C:\a"),
            (r"\\?\UNC\server\share\a", "file://server/share/a", r"\\server\share\a"),
        ] {
            let FileLocation { host, path: decoded } = FileLocation::from_windows(path).unwrap();
            assert_eq!(format!("file://{}{}", encoded(host.as_bytes()), encoded(&decoded)), uri);
            let parsed = FileLocation::parse(uri).unwrap();
            assert_eq!(parsed.into_windows().unwrap(), back);
        }
        for path in [r"\\.\COM1", r"\\?\Volume{1}\a", r"\\.\C:\a"] {
            assert_eq!(FileLocation::from_windows(path), None, "{path}");
        }
        let without_drive = FileLocation::parse("file:///tmp/a").unwrap();
        assert_eq!(without_drive.into_windows().unwrap(), r"\tmp\a");
    }

    #[test]
    fn a_key_does_not_depend_on_the_encoding() {
        let key = |uri: &str| DocumentKey::new(&uri.into());
        for (ours, theirs) in [
            ("file:///x%3Ay.c", "file:///x:y.c"),
            ("file:///%2B%40%2C%28%29%3D%26%27", "file:///+@,()=&'"),
            ("file:///C%3A/a", "file:///c:/a"),
            ("file:///%C3%A4", "file:///ä"),
            ("file:///%c3%a4", "file:///%C3%A4"),
            ("file:///a", "file:/a"),
            ("file:///a", "FILE://localhost/b/../a"),
            ("file://Server/a", "file://server/a"),
            ("untitled:a", "untitled:a"),
        ] {
            assert_eq!(key(ours), key(theirs), "{ours} {theirs}");
        }
        for (ours, theirs) in [
            ("file:///a", "file:///A"),
            ("file:///a", "file://server/a"),
            ("file:///a%2541", "file:///aA"),
            ("untitled:a", "untitled:A"),
            ("file:///%4", "file:///%5"),
        ] {
            assert_ne!(key(ours), key(theirs), "{ours} {theirs}");
        }
    }
}
