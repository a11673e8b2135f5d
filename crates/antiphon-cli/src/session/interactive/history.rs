//! The history file of the prompt.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The maximum number of lines.
pub(super) const MOST: usize = 1_000;

/// Returns the file in the directory for state of the XDG Base Directory Specification, and creates its
/// directory. Returns `None` if there is no home directory.
pub(super) fn file() -> Option<PathBuf> {
    let path = path(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))?;
    // Not an error: the editor reports an unwritable history when it saves a line.
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?);
    Some(path)
}

fn path(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // The specification says that a relative path is invalid and must be ignored.
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = state.and_then(absolute).or_else(|| Some(absolute(home?)?.join(".local/state")));
    Some(state?.join(Path::new("antiphon/session-history")))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn the_file_is_in_the_directory_for_state() {
        let path = |state: &str, home: &str| {
            path(Some(state.into()), Some(home.into())).map(|path| path.display().to_string())
        };
        assert_eq!(path("/s", "/h").as_deref(), Some("/s/antiphon/session-history"));
        for state in ["", "relative"] {
            let expected = Some("/h/.local/state/antiphon/session-history");
            assert_eq!(path(state, "/h").as_deref(), expected);
        }
        assert_eq!(path("", ""), None);
    }
}
