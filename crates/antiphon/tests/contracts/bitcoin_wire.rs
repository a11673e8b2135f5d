//! A server with `Dialect::bitcoin` and the wire of Bitcoin Core, byte for byte.

use antiphon::layer::Auth;
use antiphon::transport::http::BitcoinPolicy;
use antiphon::{Context, Dialect, ErrorObject, Handler as _, RawJson, Router, Server};
use serde::Deserialize;

use crate::bitcoin_core::cases;
use crate::http::exchange;

#[derive(Deserialize)]
struct Height {
    height: u32,
}

/// The hash of the first block of a test network.
const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";

fn node() -> Router {
    Router::new()
        .method("getblockcount", |(): (), _cx: Context| async { Ok(0) })
        .method("getblockhash", |Height { height }: Height, _cx: Context| async move {
            match height {
                0 => Ok(GENESIS),
                _ => Err(ErrorObject::new(-8, "Block height out of range")),
            }
        })
        .method("getbalance", |(): (), cx: Context| async move {
            let amount = match cx.connection().path().and_then(|path| path.strip_prefix("/wallet/"))
            {
                None => "20999999.97690000",
                Some("savings") => "1.50000000",
                Some(_) => {
                    let message = "Requested wallet does not exist or is not loaded";
                    return Err(ErrorObject::new(-18, message));
                }
            };
            RawJson::parse(amount).map_err(ErrorObject::internal)
        })
        .method("echo", |params: RawJson, _cx: Context| async move { Ok(params) })
}

#[tokio::test]
async fn every_response_is_that_of_bitcoin_core() {
    let auth = Auth::new().basic("alice", "hush");
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::bitcoin());
    let server = server.http_policy(BitcoinPolicy::new().auth(auth.clone()));
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(node().layer(auth)));
    let cases = cases();
    let mut wrong = Vec::new();
    for case in &cases {
        let expected = case.antiphon.as_ref().unwrap_or(&case.core);
        let compared = expected.compare(&exchange(&address, &case.request).await);
        wrong.extend(compared.err().map(|difference| format!("{}: {difference}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let differs = cases.iter().filter(|case| case.antiphon.is_some()).count();
    assert!(cases.len() >= 90 && differs <= 7, "{} cases, {differs} differ", cases.len());
}
