//! The tokens of the Engine API. A consensus client authenticates with them to an execution client.
//!
//! Both clients read the same 32-byte secret from a file. A token is a JWT signed with it (RFC 7519, HS256). It is
//! valid within 60 seconds of its `iat`. All other algorithms are rejected, including `none`.
//!
//! Invariant: no log, error or `Debug` output contains the secret or a token.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::HeaderValue;
use ring::hmac;
use serde_json::{Map, Value};

use super::Credentials;

/// The secret that an execution client and a consensus client share. It signs and verifies the tokens of the Engine
/// API.
///
/// [`EnginePolicy`](crate::transport::http::EnginePolicy) requires such tokens, and
/// [`ClientBuilder::jwt`](crate::ClientBuilder::jwt) sends them. The `Debug` output omits the secret.
///
/// ```no_run
/// use antiphon::layer::JwtSecret;
/// use antiphon::transport::http::EnginePolicy;
/// use antiphon::{Client, Context, Dialect, Router, Server};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = JwtSecret::read("/var/lib/node/jwt.hex")?;
/// let engine = Router::new()
///     .method("engine_exchangeCapabilities", |_: (Vec<String>,), _cx: Context| async { Ok([""; 0]) });
/// let server = Server::bind("http://127.0.0.1:8551").await?.dialect(Dialect::ethereum());
/// tokio::spawn(server.http_policy(EnginePolicy::new(secret.clone())).serve(engine));
///
/// let client = Client::builder().jwt(secret).connect("http://127.0.0.1:8551").await?;
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct JwtSecret(Arc<hmac::Key>);

/// The reason why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JwtSecretError {
    /// The file cannot be read.
    #[error("cannot read the JWT secret {}; {}", path.display(), remedy(source))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file does not contain a secret.
    #[error("invalid JWT secret in {}", path.display())]
    Content {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: Box<JwtSecretError>,
    },
    /// The text has a wrong length.
    #[error(
        "a JWT secret has 64 hexadecimal digits, found {0}; create one with `openssl rand -hex 32`"
    )]
    Length(usize),
    /// The text has a character that is not a hexadecimal digit.
    #[error(
        "a JWT secret has only hexadecimal digits, found another character at position {0}; \
         create one with `openssl rand -hex 32`"
    )]
    Digit(usize),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create one for both clients with `openssl rand -hex 32`",
        io::ErrorKind::PermissionDenied => "allow this user to read it, for example with `chown`",
        _ => "use a text file with 64 hexadecimal digits",
    }
}

/// The maximum difference between `iat` and the clock (execution-apis, engine/authentication.md).
const TOLERANCE: Duration = Duration::from_secs(60);

/// The maximum number of bytes to read from a secret file. A valid file is much shorter.
const FILE_BYTES: u64 = 1_024;

/// The header of each token: `{"typ":"JWT","alg":"HS256"}`.
const HEADER: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9";

impl JwtSecret {
    /// Reads a secret from a file that contains 64 hexadecimal digits, with or without `0x`. Logs a warning if every
    /// user of the machine can access the file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not contain a secret.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, JwtSecretError> {
        let path = path.as_ref();
        let text = read_text(path)
            .map_err(|source| JwtSecretError::File { path: path.to_owned(), source })?;
        Self::from_hex(&text).map_err(|error| JwtSecretError::Content {
            path: path.to_owned(),
            source: Box::new(error),
        })
    }

    /// Creates a secret from 64 hexadecimal digits, with or without `0x`. White space around them is ignored.
    ///
    /// # Errors
    /// Fails if the length is wrong or a character is not a hexadecimal digit.
    ///
    /// ```
    /// use antiphon::layer::JwtSecret;
    ///
    /// assert!(JwtSecret::from_hex(&format!("0x{}\n", "ab".repeat(32))).is_ok());
    /// let error = JwtSecret::from_hex("abcd").unwrap_err();
    /// assert!(error.to_string().contains("64 hexadecimal digits, found 4"));
    /// ```
    pub fn from_hex(text: &str) -> Result<Self, JwtSecretError> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = Vec::with_capacity(32);
        let mut high = None;
        for (at, digit) in digits.chars().enumerate() {
            let digit = digit.to_digit(16).ok_or(JwtSecretError::Digit(at + 1))?;
            match high.take() {
                None => high = Some(digit),
                Some(high) => bytes.push((high << 4 | digit) as u8),
            }
        }
        match (high, bytes.len()) {
            (None, 32) => Ok(Self::of(&bytes)),
            _ => Err(JwtSecretError::Length(digits.len())),
        }
    }

    fn of(key: &[u8]) -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key)))
    }

    /// Returns a token with this time of issue. Receivers accept it for 60 seconds.
    ///
    /// ```
    /// use antiphon::layer::JwtSecret;
    /// use std::time::SystemTime;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let token = JwtSecret::from_hex(&"ab".repeat(32))?.token(SystemTime::now());
    /// assert!(token.starts_with("eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9."));
    /// # Ok(()) }
    /// ```
    pub fn token(&self, issued_at: SystemTime) -> String {
        let claims = format!(r#"{{"iat":{}}}"#, since_epoch(issued_at).as_secs());
        self.sign(HEADER, &claims)
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{header}.{}", BASE64.encode(claims));
        let signature = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature))
    }

    /// Returns the value of an `Authorization` header with a new token. It is marked as sensitive.
    pub(crate) fn authorization(&self) -> HeaderValue {
        let bearer = Credentials::Bearer(self.token(SystemTime::now()));
        bearer.to_header().expect("base64 is valid in a header")
    }

    /// Verifies a token. The signature is verified before the content of the token is used.
    pub(crate) fn check(&self, token: &str, now: SystemTime) -> Result<(), TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let signature = BASE64.decode(signature).map_err(|_| TokenError::Malformed)?;
        // In constant time.
        hmac::verify(&self.0, signed.as_bytes(), &signature).map_err(|_| TokenError::Signature)?;
        check_header(&object(header)?)?;
        check_times(&object(claims)?, since_epoch(now).as_secs_f64())
    }
}

impl fmt::Debug for JwtSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JwtSecret(..)")
    }
}

/// The reason why a token is rejected. It is sent to the client, so it never contains the secret.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token is not a JWT")]
    Malformed,
    #[error(
        "the signature of the token is invalid: sign with HS256, and use the same secret file on both sides"
    )]
    Signature,
    #[error("the header of the token is invalid: `alg` must be HS256, and `crit` must be absent")]
    Header,
    #[error("the token needs `iat` as a number, and `exp` must be a number if present")]
    Times,
    #[error(
        "the token is too old: `iat` is {0:.0} seconds ago, at most 60 are allowed; create a new token for each request, and synchronize the clocks"
    )]
    Stale(f64),
    #[error(
        "the token is from the future: `iat` is {0:.0} seconds ahead, at most 60 are allowed; synchronize the clocks"
    )]
    Future(f64),
    #[error("the token has expired: its `exp` is in the past")]
    Expired,
}

/// Checks the header of a token. Only one algorithm is accepted (RFC 8725, section 3.1). `crit` names extensions that
/// the receiver must understand, and none is supported (RFC 7515, section 4.1.11).
fn check_header(header: &Map<String, Value>) -> Result<(), TokenError> {
    let is_known = header.get("alg").is_some_and(|alg| alg == "HS256");
    match is_known && !header.contains_key("crit") {
        true => Ok(()),
        false => Err(TokenError::Header),
    }
}

/// Checks `iat` and `exp`. Ignores other claims, such as `id` and `clv`.
fn check_times(claims: &Map<String, Value>, now: f64) -> Result<(), TokenError> {
    let time = |name| match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(TokenError::Times),
    };
    let age = now - time("iat")?.ok_or(TokenError::Times)?;
    let tolerance = TOLERANCE.as_secs_f64();
    if age > tolerance {
        return Err(TokenError::Stale(age));
    }
    if age < -tolerance {
        return Err(TokenError::Future(-age));
    }
    match time("exp")? {
        Some(end) if end <= now => Err(TokenError::Expired),
        _ => Ok(()),
    }
}

/// Decodes a part of a token as an Object. A derived `Deserialize` would also accept an Array.
fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let text = BASE64.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&text).map_err(|_| TokenError::Malformed)
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn read_text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    warn_if_public(&file, path);
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Logs a warning if every user can access the file. This is not an error: nodes accept such a file, and containers
/// often mount it with these permissions.
#[cfg(unix)]
fn warn_if_public(file: &File, path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let is_public = |mode: u32| mode & 0o007 != 0;
    if file.metadata().is_ok_and(|metadata| is_public(metadata.permissions().mode())) {
        let path = path.display();
        tracing::warn!(%path, "every user of this machine can access the JWT secret; use chmod 600");
    }
}

#[cfg(not(unix))]
fn warn_if_public(_: &File, _: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn secret() -> JwtSecret {
        JwtSecret::from_hex(&"00112233445566778899aabbccddeeff".repeat(2)).unwrap()
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Checks a token with these claims, and with a header of this text.
    fn checked(header: &str, claims: &str) -> Result<(), TokenError> {
        let token = secret().sign(&BASE64.encode(header), claims);
        secret().check(&token, at(NOW))
    }

    fn claims(claims: &str) -> Result<(), TokenError> {
        checked(r#"{"alg":"HS256"}"#, claims)
    }

    /// The signature is that of Python's `hmac`.
    #[test]
    fn a_token_is_that_of_other_implementations() {
        let token = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3MDAwMDAwMDB9\
                     .zbTm8XC7Pp4mafkFaoi_4bGVwl71iN6s5EEGIK6er0o";
        assert_eq!(secret().token(at(NOW)), token);
        assert_eq!(secret().check(token, at(NOW)), Ok(()));
    }

    /// RFC 7515, appendix A.1: signed with HS256, but without `iat`.
    #[test]
    fn the_signature_of_the_rfc_is_valid() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let secret = JwtSecret::of(&BASE64.decode(key).unwrap());
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9\
                     .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
                     .dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(secret.check(token, at(NOW)), Err(TokenError::Times));
        let other = token.replace("dBjf", "dBjg");
        assert_eq!(secret.check(&other, at(NOW)), Err(TokenError::Signature));
    }

    #[test]
    fn a_token_is_valid_for_a_minute_in_both_directions() {
        for (issued, outcome) in [
            (NOW, Ok(())),
            (NOW - 60, Ok(())),
            (NOW + 60, Ok(())),
            (NOW - 61, Err(TokenError::Stale(61.0))),
            (NOW + 61, Err(TokenError::Future(61.0))),
            (0, Err(TokenError::Stale(NOW as f64))),
        ] {
            assert_eq!(secret().check(&secret().token(at(issued)), at(NOW)), outcome, "{issued}");
        }
    }

    #[test]
    fn other_claims_are_ignored_except_the_end() {
        let ok = r#"{"iat":1700000000.5,"id":"node-1","clv":"Lighthouse/v7","nbf":9,"x":[]}"#;
        assert_eq!(claims(ok), Ok(()));
        assert_eq!(claims(r#"{"iat":1700000000,"exp":1700000001}"#), Ok(()));
        let ended = claims(r#"{"iat":1700000000,"exp":1700000000}"#);
        assert_eq!(ended, Err(TokenError::Expired));
        for bad in
            ["{}", r#"{"iat":"1700000000"}"#, r#"{"iat":null}"#, r#"{"iat":1700000000,"exp":""}"#]
        {
            assert_eq!(claims(bad), Err(TokenError::Times), "{bad}");
        }
        assert_eq!(claims("[1700000000]"), Err(TokenError::Malformed));
    }

    #[test]
    fn only_one_algorithm_is_accepted() {
        let fresh = format!(r#"{{"iat":{NOW}}}"#);
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"alg":"HS512"}"#,
            r#"{"alg":"hs256"}"#,
            r#"{"alg":["HS256"]}"#,
            r#"{"typ":"JWT"}"#,
            r#"{"alg":"HS256","crit":["exp"]}"#,
        ] {
            assert_eq!(checked(header, &fresh), Err(TokenError::Header), "{header}");
        }
        // Without a signature, as `none` has it.
        let none = BASE64.encode(r#"{"alg":"none"}"#);
        let unsigned = format!("{none}.{}.", BASE64.encode(&fresh));
        assert_eq!(secret().check(&unsigned, at(NOW)), Err(TokenError::Signature));
        for text in ["", ".", "..", "a.b", "a.b.c.d", "é.é.é"] {
            assert!(secret().check(text, at(NOW)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_has_32_bytes_in_hex() {
        let digits = "0123456789abcdefABCDEF0123456789abcdefABCDEF01234567890123456789";
        for text in [digits.to_owned(), format!("0x{digits}"), format!("  0x{digits}\r\n")] {
            assert!(JwtSecret::from_hex(&text).is_ok(), "{text}");
        }
        for (text, reason) in [
            ("", "found 0"),
            ("0x", "found 0"),
            (&digits[1..], "found 63"),
            (&format!("{digits}00"), "found 66"),
            (&digits.replacen('0', "g", 1), "position 1"),
        ] {
            let error = JwtSecret::from_hex(text).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("openssl rand -hex 32"), "{error}");
            assert!(text.len() < 3 || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_file_that_holds_no_secret_is_named() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("antiphon-jwt-{}", std::process::id()));
        let missing = JwtSecret::read(&path).unwrap_err().to_string();
        assert!(
            missing.contains(path.to_str().unwrap()) && missing.contains("openssl"),
            "{missing}"
        );

        std::fs::write(&path, "hush").unwrap();
        let error = JwtSecret::read(&path).unwrap_err();
        let whole = format!("{}", crate::error::ErrorChain(&error));
        assert!(whole.contains(path.to_str().unwrap()) && whole.contains("position 1"), "{whole}");
        assert!(!whole.contains("hush"), "{whole}");

        std::fs::write(&path, format!("0x{}\n", "ab".repeat(32))).unwrap();
        let secret = JwtSecret::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(format!("{secret:?}"), "JwtSecret(..)");
        assert!(secret.authorization().is_sensitive());
        assert!(!secret.token(at(NOW)).contains("abab"));
    }
}
