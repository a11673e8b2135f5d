//! The checker against the library: over TLS, and without the library in its dependencies.

use antiphon::transport::tls::SelfSigned;
use antiphon::{Context, ErrorObject, Router, Server};
use antiphon_check::raw::TlsOptions;
use antiphon_check::server::{self, ServerCheck, Suite};
use antiphon_check::{CaseStatus, CheckError, CheckErrorKind, Selection};

/// The manifest is where a reader looks for the claim.
#[test]
fn the_library_is_a_dependency_of_tests_alone() {
    let manifest = include_str!("../Cargo.toml");
    let (_, rest) = manifest.split_once("\n[dependencies]\n").expect("there are dependencies");
    let (normal, tests) = rest.split_once("\n[dev-dependencies]\n").expect("there are tests");
    assert!(!normal.lines().any(|line| line.starts_with("antiphon")), "{normal}");
    assert!(tests.lines().any(|line| line.starts_with("antiphon")), "{tests}");
}

fn router() -> Router {
    Router::new().method("subtract", |(a, b): (i64, i64), _cx: Context| async move {
        Ok::<i64, ErrorObject>(a - b)
    })
}

/// Runs a few cases over `https://`, with these options.
async fn check(made: &SelfSigned, tls: TlsOptions) -> Result<server::ServerRun, CheckError> {
    let server = Server::bind("https://127.0.0.1:0").await.expect("a port is free");
    let server = server.tls(made.server().expect("the certificate is usable"));
    let address = server.endpoint().to_string().parse()?;
    let serving = tokio::spawn(server.serve(router()));
    let mut suite = Suite::shipped()?;
    suite.select(&Selection { only: vec!["ids".into()], skip: Vec::new() })?;
    let check = ServerCheck { tls, ..ServerCheck::new(address) };
    let run = server::run(&check, &suite, |_| {}).await;
    serving.abort();
    run
}

#[tokio::test]
async fn a_server_is_checked_over_tls() {
    let made = SelfSigned::new(["127.0.0.1".to_owned()]).unwrap();
    let roots = TlsOptions::default().extra_roots(made.certificate_pem().as_bytes()).unwrap();
    for trusted in [roots, TlsOptions::default().accept_any_certificate()] {
        let run = check(&made, trusted).await.unwrap();
        let count = |status| run.results.iter().filter(|case| case.status == status).count();
        assert_eq!((count(CaseStatus::Failed), run.is_gone, run.is_late), (0, false, false));
        assert!(count(CaseStatus::Passed) > 10, "{run:?}");
        assert_eq!(run.method, "subtract");
    }
}

#[tokio::test]
async fn an_untrusted_server_is_unreachable() {
    let made = SelfSigned::new(["127.0.0.1".to_owned()]).unwrap();
    let error = check(&made, TlsOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), CheckErrorKind::Unreachable);
    assert!(error.to_string().contains("trust its authority"), "{error}");
}
