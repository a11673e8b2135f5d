//! jsonrpsee's server as in its documentation: HTTP and WebSocket on one port.
//!
//! Methods that never await use `register_method`, which is its fast path. Raised limits: its
//! defaults of 100 connections and 10 MiB messages would reject some of the workloads.

use std::error::Error;
use std::time::Duration;

use jsonrpsee::core::{JsonRawValue, RpcResult};
use jsonrpsee::server::{Server, ServerConfig};
use jsonrpsee::{Extensions, RpcModule, types::Params};

/// Serves until it is killed.
pub async fn serve(allocations: fn() -> usize) -> Result<(), Box<dyn Error>> {
    let config = ServerConfig::builder()
        .max_connections(16_384)
        .max_request_body_size(32 << 20)
        .max_response_body_size(32 << 20)
        .build();
    let server = Server::builder().set_config(config).build("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    println!(r#"{{"http":"http://{address}","ws":"ws://{address}"}}"#);
    server.start(module(allocations)?).stopped().await;
    Ok(())
}

fn module(allocations: fn() -> usize) -> Result<RpcModule<()>, Box<dyn Error>> {
    let mut module = RpcModule::new(());
    module.register_method("say_hello", |_, _, _| "hello")?;
    module.register_method("add", |params, _, _| add(&params))?;
    module.register_method("echo", |params, _, _| echo(&params))?;
    module.register_async_method("sleep", sleep)?;
    module.register_method("allocations", move |_, _, _| allocations() as u64)?;
    Ok(module)
}

fn add(params: &Params<'_>) -> RpcResult<i64> {
    let (a, b): (i64, i64) = params.parse()?;
    Ok(a + b)
}

fn echo(params: &Params<'_>) -> RpcResult<Box<JsonRawValue>> {
    params.parse()
}

async fn sleep(params: Params<'static>, _: std::sync::Arc<()>, _: Extensions) -> RpcResult<u64> {
    let (ms,): (u64,) = params.parse()?;
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(ms)
}
