//! The service of `docs/coming-from-jsonrpsee.md` as jsonrpsee has it; the page shows it from here on.

use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use jsonrpsee::PendingSubscriptionSink;
use jsonrpsee::core::{SubscriptionResult, async_trait, client::Error, to_json_raw_value};
use jsonrpsee::proc_macros::rpc;
use jsonrpsee::server::{HttpBody, HttpResponse, Server};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::ws_client::WsClientBuilder;
use tower_http::validate_request::{ValidateRequest, ValidateRequestHeaderLayer};

#[rpc(server, client, namespace = "price")]
pub trait Prices {
    /// The price of a symbol, in cents.
    #[method(name = "get")]
    async fn get(&self, symbol: String) -> Result<u64, ErrorObjectOwned>;

    /// Every price of a symbol from now on.
    #[subscription(name = "watch" => "changed", unsubscribe = "unwatch", item = u64)]
    async fn watch(&self, symbol: String) -> SubscriptionResult;
}

struct Market;

#[async_trait]
impl PricesServer for Market {
    async fn get(&self, symbol: String) -> Result<u64, ErrorObjectOwned> {
        match symbol.as_str() {
            "ACME" => Ok(4_200),
            _ => Err(ErrorObjectOwned::owned(404, "no such symbol", Some(symbol))),
        }
    }

    async fn watch(&self, pending: PendingSubscriptionSink, _symbol: String) -> SubscriptionResult {
        let sink = pending.accept().await?;
        let mut prices = stream::iter([4_200, 4_210, 4_190]);
        while let Some(price) = prices.next().await {
            sink.send(to_json_raw_value(&price)?).await?;
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Token;

impl<B> ValidateRequest<B> for Token {
    type ResponseBody = HttpBody;

    fn validate(&mut self, request: &mut Request<B>) -> Result<(), HttpResponse> {
        match request.headers().get(AUTHORIZATION) {
            Some(token) if token == "Bearer s3cret" => Ok(()),
            _ => {
                let mut refusal = HttpResponse::new(HttpBody::empty());
                *refusal.status_mut() = StatusCode::UNAUTHORIZED;
                Err(refusal)
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = tower::ServiceBuilder::new().layer(ValidateRequestHeaderLayer::custom(Token));
    let server = Server::builder().set_http_middleware(token).build("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    let _handle = server.start(Market.into_rpc());

    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
    let client =
        WsClientBuilder::new().set_headers(headers).build(format!("ws://{address}")).await?;
    println!("ACME: {}", client.get("ACME".to_owned()).await?);
    if let Err(Error::Call(error)) = client.get("ABC".to_owned()).await {
        println!("{}: {:?}", error.message(), error.data());
    }
    let mut prices = client.watch("ACME".to_owned()).await?;
    for _ in 0..3 {
        if let Some(price) = prices.next().await {
            println!("ACME: {}", price?);
        }
    }
    Ok(())
}
