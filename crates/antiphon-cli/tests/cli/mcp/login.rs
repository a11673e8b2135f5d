//! `antiphon mcp login` against an authorization server in this process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use antiphon::http::Request;
use antiphon_mcp::auth::server::{Authorization, JwtVerifier, ProtectedResource, RemoteKeys};
use bytes::Bytes;
use tokio::runtime::Runtime;

use crate::authorization::authorization_server::AuthorizationServer;
use crate::authorization::http::send;
use crate::support::{Ended, Scratch, antiphon, run};

/// A server that requires authorization, with its authorization server.
struct Protected {
    url: String,
    issuer: AuthorizationServer,
    runtime: Runtime,
}

impl Protected {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let (url, issuer) = runtime.block_on(async {
            let issuer = AuthorizationServer::start().await;
            let server = crate::everything::server().build();
            let bound = server.bind("http://127.0.0.1:0/mcp").await.unwrap();
            let url = bound.endpoint().to_string();
            let resource = ProtectedResource::new(&url).unwrap().scopes(["files:read"]);
            let resource = resource.authorization_server(&issuer.issuer).unwrap();
            let keys = RemoteKeys::new(&format!("{}/jwks", issuer.issuer)).unwrap();
            let verifier = JwtVerifier::new(&issuer.issuer, &url, keys);
            let layer = Authorization::new(resource, verifier).require(["files:read"]);
            tokio::spawn(bound.http_layer(layer).serve(server));
            (url, issuer)
        });
        Self { url, issuer, runtime }
    }

    /// Opens a page as a browser does, which follows redirects.
    fn browse(&self, page: &str) {
        self.runtime.block_on(async {
            let mut page = page.to_owned();
            for _ in 0..5 {
                let response = send(Request::get(&page).body(Bytes::new()).unwrap()).await;
                let Some(next) = response.headers().get("location") else { return };
                page = next.to_str().unwrap().to_owned();
            }
            panic!("too many redirects");
        });
    }
}

fn at_home(home: &Scratch) -> Command {
    let mut command = antiphon();
    command.arg("mcp").env("XDG_STATE_HOME", home.path("")).env("HOME", home.path(""));
    command
}

/// Logs in, and plays the browser.
fn login(server: &Protected, home: &Scratch, words: &[&str]) -> Ended {
    let mut command = at_home(home);
    command.args(["login", &server.url]).args(words).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while reader.read_line(&mut stderr).unwrap() > 0 {
        let last = stderr.lines().last().unwrap();
        if let Some((_, page)) = last.split_once("Open this page to log in: ") {
            server.browse(page);
        }
    }
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    Ended { code: child.wait().unwrap().code(), stdout, stderr }
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// The strings in the stored files that look like tokens.
fn secrets(home: &Scratch) -> Vec<String> {
    let text: String = files(&home.path("antiphon"))
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
    words.filter(|word| word.starts_with("ey") && word.len() > 40).map(str::to_owned).collect()
}

#[test]
fn a_login_is_stored_and_used() {
    let (server, home) = (Protected::start(), Scratch::new());
    let refused = run(at_home(&home).args(["list", &server.url]), b"");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("antiphon mcp login {}", server.url)), "{refused:?}");

    let ended = login(&server, &home, &["--scope", "files:read"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("logged in to"), "{ended:?}");
    let stored = files(&home.path("antiphon"));
    assert!(!stored.is_empty());
    for file in &stored {
        let mode = std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
        let folder =
            std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777;
        assert_eq!(folder, 0o700, "{}", file.display());
    }
    let secrets = secrets(&home);
    assert!(!secrets.is_empty(), "the test finds no token in the files");

    let mut outputs = vec![ended];
    outputs.push(run(at_home(&home).args(["list", &server.url, "--tools", "-v"]), b""));
    let traced = ["call", &server.url, "test_simple_text", "--log", "trace"];
    outputs.push(run(at_home(&home).args(traced), b""));
    for output in &outputs {
        assert_eq!(output.code, Some(0), "{output:?}");
        for secret in &secrets {
            assert!(!output.stderr.contains(secret) && !output.stdout.contains(secret));
        }
    }

    let ended = run(at_home(&home).arg("logout"), b"");
    assert_eq!((ended.code, ended.stderr.trim()), (Some(0), "logged out"));
    assert_eq!(files(&home.path("antiphon")), Vec::<std::path::PathBuf>::new());
    assert_eq!(run(at_home(&home).args(["list", &server.url]), b"").code, Some(3));
    let again = run(at_home(&home).arg("logout"), b"");
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "there are no tokens"));
}

#[test]
fn a_client_logs_in_as_itself() {
    let (server, home) = (Protected::start(), Scratch::new());
    std::fs::write(home.path("secret.txt"), "hush\n").unwrap();
    let secret = format!("@{}", home.path("secret.txt").display());
    let words = ["--client-id", "robot", "--client-secret", &secret, "--client-credentials"];
    let ended = login(&server, &home, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("hush") && !ended.stderr.contains("Open this page"));
    assert!(!server.issuer.requests("/token").is_empty());
    let listed = run(at_home(&home).args(["list", &server.url, "--tools"]), b"");
    assert_eq!(listed.code, Some(0), "{listed:?}");
}

#[test]
fn a_wrong_login_says_what_to_do() {
    let home = Scratch::new();
    for (words, code, expected) in [
        (&["login", "exec:cat"][..], 2, "by its environment"),
        (&["login"], 2, "<ENDPOINT>"),
        (&["login", "http://127.0.0.1:1/mcp", "--client-secret", "x"], 2, "--client-id"),
        (&["login", "http://127.0.0.1:1/mcp", "--client-credentials"], 2, "--client-secret"),
        (&["login", "http://127.0.0.1:1/mcp"], 3, "127.0.0.1:1"),
    ] {
        let ended = run(at_home(&home).args(words), b"");
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
}
