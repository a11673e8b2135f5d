//! hyper's pooled client with a message written by hand: what a client upon it can reach.

use bytes::Bytes;
use clients::{Fault, Load};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

const CALL: &[u8] = br#"{"jsonrpc":"2.0","method":"say_hello","id":1}"#;
const REPLY: &[u8] = br#"{"jsonrpc":"2.0","result":"hello","id":1}"#;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let load = Load::from_args()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let uri: http::Uri = load.endpoint.parse()?;
    load.run(move || call(client.clone(), uri.clone())).await
}

async fn call(client: Client<HttpConnector, Full<Bytes>>, uri: http::Uri) -> Result<(), Fault> {
    let request = Request::post(uri).header(CONTENT_TYPE, "application/json");
    let response = client.request(request.body(Full::from(CALL))?).await?;
    let body = response.into_body().collect().await?.to_bytes();
    if body == REPLY { Ok(()) } else { Err(format!("wrong reply: {body:?}").into()) }
}
