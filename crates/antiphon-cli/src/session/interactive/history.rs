//! The history of the prompt, and its file.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::dialect::DialectName;

/// The maximum number of lines.
pub(super) const MOST: usize = 1_000;

/// The history of the prompt.
pub(super) struct History {
    /// `None` if no line is saved.
    pub(super) file: Option<PathBuf>,
    dialect: Option<DialectName>,
}

impl History {
    /// Creates the history of a session. `is_saved` is false with `--no-history`.
    pub(super) fn new(is_saved: bool, dialect: Option<DialectName>) -> Self {
        Self { file: is_saved.then(file).flatten(), dialect }
    }

    /// Returns whether a line belongs in the history: it names no method that takes a secret.
    pub(super) fn accepts(&self, line: &str) -> bool {
        self.dialect != Some(DialectName::Bitcoin)
            || !SECRET_METHODS.iter().any(|method| line.contains(method))
    }
}

/// The methods of Bitcoin Core whose params are passphrases or private keys. `walletpassphrase` also matches
/// `walletpassphrasechange`.
const SECRET_METHODS: [&str; 11] = [
    "createwallet",
    "descriptorprocesspsbt",
    "encryptwallet",
    "importdescriptors",
    "importmulti",
    "importprivkey",
    "migratewallet",
    "sethdseed",
    "signmessagewithprivkey",
    "signrawtransactionwithkey",
    "walletpassphrase",
];

/// Returns the path of the history file in the state directory of the XDG Base Directory Specification, and creates
/// that directory. Returns `None` if there is no home directory.
fn file() -> Option<PathBuf> {
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
    use super::*;

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

    #[test]
    fn lines_with_the_secrets_of_a_bitcoin_wallet_are_not_accepted() {
        let accepts = |dialect, line: &str| History::new(false, dialect).accepts(line);
        let bitcoin = Some(DialectName::Bitcoin);
        for line in [
            "walletpassphrase hush 60",
            "x = call 'importprivkey' L1",
            "getblockcount\nwalletpassphrasechange old new",
        ] {
            assert!(!accepts(bitcoin, line) && accepts(None, line), "{line}");
        }
        assert!(accepts(bitcoin, "walletlock"));
    }
}
