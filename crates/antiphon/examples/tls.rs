//! HTTPS and secure WebSockets on one port, with a self-signed certificate, and a client that trusts it.
//!
//! `cargo run -p antiphon --features full --example tls`

use antiphon::transport::tls::{TlsClient, TlsServer};
use antiphon::{Client, Context, ErrorChain, Router, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real service reads both from files: `TlsServer::from_pem_files`. For development, `SelfSigned`
    // (feature `self-signed`) generates them in the same way.
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());

    let router = Router::new().method("whereami", |(): (), cx: Context| async move {
        Ok(format!("on {}", cx.connection().transport))
    });
    let tls = TlsServer::from_pem(&certificate, &key)?;
    let server = Server::bind("https://127.0.0.1:0").await?.tls(tls);
    let (https, wss) = (server.endpoint().clone(), server.endpoint().as_ws());
    tokio::spawn(server.serve(router));

    let trusting = TlsClient::new().extra_roots(&certificate)?;
    for endpoint in [&https, &wss] {
        let client = Client::builder().tls(trusting.clone()).connect(endpoint).await?;
        println!("{}", client.call::<String>("whereami", ()).await?);
    }
    // A client that does not trust the certificate cannot connect.
    if let Err(error) = Client::connect(&https).await?.call::<String>("whereami", ()).await {
        println!("without the extra root certificate: {}", ErrorChain(&error));
    }
    Ok(())
}
