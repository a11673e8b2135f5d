//! jsonrpsee's clients.

use std::sync::Arc;

use clients::{Fault, Load, check};
use jsonrpsee::core::client::ClientT;
use jsonrpsee::http_client::HttpClient;
use jsonrpsee::rpc_params;
use jsonrpsee::ws_client::WsClientBuilder;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let load = Load::from_args()?;
    if load.endpoint.starts_with("ws:") {
        let client = WsClientBuilder::default().build(&load.endpoint).await?;
        run(load, client).await
    } else {
        let client = HttpClient::builder().build(&load.endpoint)?;
        run(load, client).await
    }
}

async fn run(load: Load, client: impl ClientT + Send + Sync + 'static) -> Result<(), Fault> {
    let client = Arc::new(client);
    load.run(move || {
        let client = client.clone();
        async move { check(&client.request::<String, _>("say_hello", rpc_params![]).await?) }
    })
    .await
}
