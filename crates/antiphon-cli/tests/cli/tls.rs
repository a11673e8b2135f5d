//! TLS on the command line: `serve` with a self-signed certificate, and its clients.

use std::path::PathBuf;

use crate::support::{Ended, Scratch, Server, antiphon, run};

const SECURE: &str =
    "https://127.0.0.1:0 wss://127.0.0.1:0 tls://127.0.0.1:0 tls+header://127.0.0.1:0";

/// A server on every TLS transport, and the file with its certificate.
struct Secure {
    server: Server,
    file: PathBuf,
    _scratch: Scratch,
}

impl Secure {
    fn start() -> Self {
        let scratch = Scratch::new();
        let file = scratch.path("cert.pem");
        let server = Server::start(SECURE, &format!("--tls-self-signed={}", file.display()));
        Self { server, file, _scratch: scratch }
    }

    /// Runs a command that trusts the certificate.
    fn cli(&self, words: &[&str], input: &str) -> Ended {
        let mut command = antiphon();
        run(command.args(words).arg("--cacert").arg(&self.file), input.as_bytes())
    }
}

fn cli(words: &[&str]) -> Ended {
    run(antiphon().args(words), b"")
}

#[track_caller]
fn gives(ended: &Ended, stdout: &str) {
    assert_eq!((ended.code, &*ended.stdout), (Some(0), stdout), "{ended:?}");
}

#[test]
fn every_command_supports_tls() {
    let secure = Secure::start();
    for endpoint in secure.server.endpoints() {
        gives(&secure.cli(&["call", endpoint, "subtract", "42", "23"], ""), "19\n");
        gives(&secure.cli(&["notify", endpoint, "update", "1"], ""), "");
        let batch = secure.cli(&["batch", endpoint], "{\"method\":\"sum\",\"params\":[1,2]}");
        gives(&batch, "{\"jsonrpc\":\"2.0\",\"result\":3,\"id\":1}\n");
        let bench = ["bench", endpoint, "subtract", "42", "23", "-n", "20", "-c", "2"];
        let ended = secure.cli(&[&bench[..], &["--expect", "19"]].concat(), "");
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let https = secure.server.endpoint("https");
    gives(&secure.cli(&["call", "--http2", https, "subtract", "42", "23"], ""), "19\n");
    gives(&secure.cli(&["call", &https.replace("https", "wss"), "sum", "1", "2"], ""), "3\n");
}

#[test]
fn an_untrusted_certificate_is_rejected_without_a_flag() {
    let secure = Secure::start();
    for endpoint in secure.server.endpoints() {
        for command in ["call", "bench"] {
            let words = [command, endpoint, "subtract", "42", "23"];
            let refused = cli(&words);
            assert_eq!((refused.code, &*refused.stdout), (Some(3), ""), "{refused:?}");
            assert!(refused.stderr.contains("hint: --cacert FILE"), "{refused:?}");
        }
        // SSL_CERT_FILE replaces the certificates that the system trusts.
        let mut command = antiphon();
        command.args(["call", endpoint, "subtract", "42", "23"]);
        gives(&run(command.env("SSL_CERT_FILE", &secure.file), b""), "19\n");
        gives(&cli(&["call", "-k", endpoint, "subtract", "42", "23"]), "19\n");
        gives(&cli(&["call", "--insecure", endpoint, "subtract", "42", "23"]), "19\n");
    }
}

#[test]
fn serve_prints_the_generated_certificate_and_how_to_trust_it() {
    let scratch = Scratch::new();
    let file = scratch.path("cert.pem");
    for (flag, trust) in [
        (format!("--tls-self-signed={}", file.display()), format!("--cacert {}", file.display())),
        ("--tls-self-signed".to_owned(), "-k".to_owned()),
    ] {
        let server = Server::start("https://127.0.0.1:0", &flag);
        let https = server.endpoint("https").to_owned();
        let made = server.stderr_line();
        assert!(made.contains("certificate: SHA-256 ") && made.matches(':').count() > 31, "{made}");
        if trust == "-k" {
            assert!(server.stderr_line().contains("--tls-self-signed=FILE"));
        }
        assert!(server.stderr_line().contains(&format!("curl {trust} {https} ")));
        let call = server.stderr_line();
        let words = call.split_once("try: antiphon ").unwrap().1.split(' ').collect::<Vec<_>>();
        gives(&cli(&words), "19\n");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("BEGIN CERTIFICATE") && !text.contains("PRIVATE"), "{text}");
}

#[test]
fn plain_text_to_a_tls_port_and_back_is_explained() {
    let secure = Secure::start();
    let plain = secure.server.endpoint("https").replace("https", "http");
    let ended = cli(&["call", &plain, "subtract", "42", "23"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("call https://"), "{ended:?}");
    let plain = secure.server.endpoint("tls").replace("tls", "tcp");
    let ended = cli(&["call", &plain, "subtract", "42", "23"]);
    assert!(ended.stderr.contains("call tls://"), "{ended:?}");
    let server = Server::start("http://127.0.0.1:0", "");
    let ended = cli(&["call", "-k", &server.endpoint("http").replace("http", "https"), "echo"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("use http://"), "{ended:?}");
}
