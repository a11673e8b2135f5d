//! The cookie file of a server: a user and a random password, for clients with permission to read the file.
//!
//! Bitcoin nodes write such a file, and their clients read it. The file never contains a password that the user chose.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::exit::CommandError;

/// A cookie file of this process. Dropping it removes the file.
pub(crate) struct AuthCookie {
    path: PathBuf,
    password: String,
}

impl AuthCookie {
    pub(crate) const USER: &str = "__cookie__";

    /// Writes a cookie file with a new password. An existing file is replaced in one step.
    pub(crate) fn create(path: &Path) -> Result<Self, CommandError> {
        let failed = |error: io::Error| {
            let path = path.display();
            CommandError::usage(format!("cannot write the cookie file {path}: {error}"))
                .hint("choose a file in an existing directory that you can write to")
        };
        let cookie = Self { path: path.to_owned(), password: password().map_err(failed)? };
        let mut name = path.as_os_str().to_owned();
        name.push(".tmp");
        let written = cookie.write_to(Path::new(&name)).and_then(|()| fs::rename(&name, path));
        if written.is_err() {
            let _ = fs::remove_file(&name);
        }
        written.map_err(failed).map(|()| cookie)
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    fn text(&self) -> String {
        format!("{}:{}", Self::USER, self.password)
    }

    /// Removes an old temporary file first, because it may have another mode.
    fn write_to(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(self.text().as_bytes())
    }
}

impl Drop for AuthCookie {
    fn drop(&mut self) {
        // Another server may have replaced the file.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns 32 random bytes in hexadecimal digits.
fn password() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
