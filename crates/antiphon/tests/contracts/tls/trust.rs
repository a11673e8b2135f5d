//! Which servers a client trusts, and which clients a server accepts.

use std::future::IntoFuture as _;

use antiphon::layer::Auth;
use antiphon::transport::tls::{PeerCertificates, TlsClient, TlsServer};
use antiphon::{Client, Context, ErrorChain, Handler as _, Identity, Limits, Router, Server};
use tokio::sync::mpsc;

use super::{SECURE, attempt, serve_tls, service, showing};
use crate::pki::{AUTHORITY, Authority, local, trusting};
use crate::support::{serve, within};

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_trusted() {
    let foreign = Authority::new("foreign").issue(&["127.0.0.1"]);
    let expired = AUTHORITY.issue_until(&["127.0.0.1"], 2020);
    let elsewhere = AUTHORITY.issue(&["example.org"]);
    for (shown, reason) in [
        (&foreign, "trust its authority as an extra root"),
        (&expired, "has expired"),
        (&elsewhere, "is for another name"),
    ] {
        for endpoint in SECURE {
            let address = serve_tls(endpoint, shown.server(), Limits::default()).await;
            let refused = attempt(trusting(), &address).await.unwrap_err();
            assert!(refused.contains(reason) && refused.contains("127.0.0.1"), "{refused}");
            // A client may skip the verification.
            let careless = TlsClient::new().dangerously_accept_any_certificate();
            assert_eq!(attempt(careless, &address).await, Ok(None));
        }
    }
}

#[tokio::test]
async fn the_system_store_does_not_contain_the_test_authority() {
    let address = serve("tls://127.0.0.1:0", Limits::default(), service()).await;
    let refused = attempt(TlsClient::new(), &address).await.unwrap_err();
    assert!(refused.contains("extra root"), "{refused}");
    let trusted = TlsClient::new().extra_roots(&AUTHORITY.pem).unwrap();
    assert_eq!(attempt(trusted, &address).await, Ok(None));
}

#[tokio::test]
async fn a_client_certificate_is_requested_verified_and_visible() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let stranger = Authority::new("strangers").issue(&["ada.example"]);
    let expired = clients.issue_until(&["ada.example"], 2020);
    let required = local().server().require_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let address = serve_tls(endpoint, required.clone(), Limits::default()).await;
        let seen = attempt(showing(&ada), &address).await.unwrap();
        assert_eq!(seen, Some(vec![ada.der.clone()]), "{endpoint}");
        let refused = attempt(trusting(), &address).await.unwrap_err();
        assert!(refused.contains("requires a client certificate"), "{endpoint}: {refused}");
        for bad in [&stranger, &expired] {
            let refused = attempt(showing(bad), &address).await.unwrap_err();
            assert!(refused.contains("rejected our certificate"), "{endpoint}: {refused}");
        }
    }
}

#[tokio::test]
async fn a_client_certificate_may_be_optional() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let optional = local().server().accept_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let address = serve_tls(endpoint, optional.clone(), Limits::default()).await;
        assert_eq!(attempt(trusting(), &address).await, Ok(None));
        assert_eq!(attempt(showing(&ada), &address).await, Ok(Some(vec![ada.der.clone()])));
        // The server does not request it.
        let address = serve_tls(endpoint, local().server(), Limits::default()).await;
        assert_eq!(attempt(showing(&ada), &address).await, Ok(None));
    }
}

#[tokio::test]
async fn the_application_sees_the_client_certificate() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let required = local().server().require_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let (tell, mut told) = mpsc::channel(1);
        let server = Server::bind(endpoint).await.unwrap().tls(required.clone());
        let server = server.on_connect(move |connection| {
            let shown = connection.extensions.get::<PeerCertificates>().cloned();
            let _ = tell.try_send(shown.map(|shown| shown.end_entity().to_vec()));
        });
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(service()));
        attempt(showing(&ada), &address).await.unwrap();
        assert_eq!(within(told.recv()).await.unwrap().as_ref(), Some(&ada.der), "{endpoint}");
    }
}

/// A certificate becomes an identity, and a client without one has no identity.
#[tokio::test]
async fn a_certificate_is_a_credential() {
    let clients = Authority::new("clients");
    let (ada, bob) = (clients.issue(&["ada.example"]), clients.issue(&["bob.example"]));
    let optional = local().server().accept_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let known = ada.der.clone();
        let server = Server::bind(endpoint).await.unwrap().tls(optional.clone());
        let server = server.on_connect(move |connection| {
            let shown = connection.extensions.get::<PeerCertificates>();
            if shown.is_some_and(|shown| shown.end_entity() == known) {
                connection.extensions.insert(Identity::new("ada"));
            }
        });
        let address = server.endpoint().to_string();
        let router = Router::new().method("who", |(): (), cx: Context| async move {
            Ok(cx.identity().map(|identity| identity.name().to_owned()))
        });
        tokio::spawn(server.serve(router.layer(Auth::new())));
        for (tls, who) in [(showing(&ada), Some("ada")), (showing(&bob), None), (trusting(), None)]
        {
            let client = Client::builder().tls(tls).connect(&address).await.unwrap();
            let called = within(client.call::<String>("who", ()).into_future()).await;
            match who {
                Some(name) => assert_eq!(called.unwrap(), name, "{endpoint}"),
                None => assert!(called.unwrap_err().to_string().contains("-32013"), "{endpoint}"),
            }
        }
    }
}

/// The first line of the error for these two files, with `{dir}` for their directory.
fn pem_files_error(chain: &str, key: &str) -> String {
    let name = format!("antiphon-pem-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let (chain_file, key_file) = (dir.join("chain.pem"), dir.join("key.pem"));
    std::fs::write(&chain_file, chain).unwrap();
    std::fs::write(&key_file, key).unwrap();
    let error = TlsServer::from_pem_files(&chain_file, &key_file).unwrap_err();
    std::fs::remove_dir_all(&dir).unwrap();
    let error = ErrorChain(&error).to_string().replace(&dir.display().to_string(), "{dir}");
    error.split(';').next().unwrap_or_default().to_owned()
}

#[test]
fn an_invalid_certificate_is_rejected_with_a_reason() {
    let (ours, other) = (local(), AUTHORITY.issue(&["localhost"]));
    let refused = |chain: &str, key: &str| {
        ErrorChain(&TlsServer::from_pem(chain, key).unwrap_err()).to_string()
    };
    assert!(refused("", &ours.key).contains("found no certificate"));
    assert!(refused(&ours.chain, &ours.chain).contains("found no private key"));
    assert!(refused(&ours.chain, &other.key).contains("does not belong to the certificate"));
    let refused = TlsClient::new().client_certificate(&ours.chain, &other.key).unwrap_err();
    assert!(ErrorChain(&refused).to_string().contains("does not belong to the certificate"));
    assert!(TlsClient::new().extra_roots("nothing").is_err());
    let missing = TlsServer::from_pem_files("/nowhere/chain.pem", "/nowhere/key.pem").unwrap_err();
    assert!(missing.to_string().contains("/nowhere/chain.pem"), "{missing}");
    assert_eq!(pem_files_error(&ours.chain, "nothing"), "found no private key in {dir}/key.pem");
    assert_eq!(pem_files_error("", &ours.key), "found no certificate in {dir}/chain.pem");
    assert_eq!(
        pem_files_error(&ours.chain, &other.key),
        "cannot use the certificate in {dir}/chain.pem with the private key in {dir}/key.pem: \
        the private key does not belong to the certificate"
    );
    let secret = format!("{:?}", trusting().client_certificate(&ours.chain, &ours.key).unwrap());
    assert!(!secret.contains("PRIVATE") && !secret.contains("key"), "{secret}");
}
