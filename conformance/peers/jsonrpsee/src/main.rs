//! jsonrpsee's server as its documentation has it: HTTP and WebSocket on one port, everything by default.
//!
//! Usage: conformance-jsonrpsee PORT

use std::error::Error;

use jsonrpsee::core::{JsonRawValue, RpcResult};
use jsonrpsee::server::Server;
use jsonrpsee::{RpcModule, types::Params};
use serde::Deserialize;

#[derive(Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: conformance-jsonrpsee PORT")?.parse()?;
    let server = Server::builder().build(("127.0.0.1", port)).await?;
    server.start(module()?).stopped().await;
    Ok(())
}

fn module() -> Result<RpcModule<()>, Box<dyn Error>> {
    let mut module = RpcModule::new(());
    module.register_method("subtract", |params, _, _| subtract(&params))?;
    module.register_method("sum", |params, _, _| sum(&params))?;
    module.register_method("get_data", |_, _, _| RpcResult::Ok(("hello", 5)))?;
    module.register_method("echo", |params, _, _| echo(&params))?;
    for name in ["update", "notify_hello", "notify_sum"] {
        module.register_method(name, |_, _, _| ())?;
    }
    Ok(module)
}

fn subtract(params: &Params<'_>) -> RpcResult<i64> {
    let Subtract { minuend, subtrahend } = params.parse()?;
    Ok(minuend - subtrahend)
}

fn sum(params: &Params<'_>) -> RpcResult<i64> {
    let values: Vec<i64> = params.parse()?;
    Ok(values.iter().sum())
}

fn echo(params: &Params<'_>) -> RpcResult<Box<JsonRawValue>> {
    params.parse()
}
