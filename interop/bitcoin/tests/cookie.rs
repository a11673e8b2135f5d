//! Clients that read the cookie of `antiphon serve --auth-cookie`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bitcoincore_rpc::RpcApi as _;

/// `antiphon serve` with a cookie file. It is killed when it is dropped, and the file is removed.
struct Serve {
    child: Child,
    url: String,
    cookie: PathBuf,
}

impl Serve {
    fn start() -> Self {
        let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug/antiphon");
        assert!(
            binary.exists(),
            "{} is missing: run cargo build -p antiphon-cli",
            binary.display()
        );
        let cookie = std::env::temp_dir().join(format!("antiphon-cookie-{}", std::process::id()));
        let mut serve = Command::new(binary);
        serve.args(["serve", "http://127.0.0.1:0", "--dialect", "bitcoin", "--auth-cookie"]);
        let mut child = serve.arg(&cookie).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let line = BufReader::new(stderr).lines().next().expect("it prints its URL").unwrap();
        let url = line.strip_prefix("listening on ").expect("it prints its URL").to_owned();
        Self { child, url, cookie }
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.cookie);
    }
}

#[test]
#[ignore = "needs cargo build -p antiphon-cli"]
#[allow(deprecated, reason = "0.18 points to a crate for test networks")]
fn rust_clients_read_the_cookie() {
    let serve = Serve::start();
    let auth = bitcoincore_rpc::Auth::CookieFile(serve.cookie.clone());
    let client = bitcoincore_rpc::Client::new(&serve.url, auth).unwrap();
    assert_eq!(client.call::<String>("whoami", &[]).unwrap(), "__cookie__");

    let auth = corepc_client::client_sync::Auth::CookieFile(serve.cookie.clone());
    let client = corepc_client::client_sync::v28::Client::new_with_auth(&serve.url, auth).unwrap();
    assert_eq!(client.call::<String>("whoami", &[]).unwrap(), "__cookie__");
}
