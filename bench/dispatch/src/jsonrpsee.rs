//! jsonrpsee without a socket. Its module does not support batches, so those are rejected.

use std::error::Error;

use jsonrpsee::RpcModule;
use jsonrpsee::core::{EmptyServerParams, RpcResult};
use jsonrpsee::server::{Server, TowerService, stop_channel};
use tower::layer::util::Identity;

use crate::Meter;
use crate::case::Case;

fn module() -> Result<RpcModule<()>, Box<dyn Error>> {
    let mut module = RpcModule::new(());
    module.register_method("say_hello", |_, _, _| "hello")?;
    module.register_method("add", |params, _, _| -> RpcResult<i64> {
        let (a, b): (i64, i64) = params.parse()?;
        Ok(a + b)
    })?;
    Ok(module)
}

pub(crate) fn service() -> Result<TowerService<Identity, Identity>, Box<dyn Error>> {
    let (stop, handle) = stop_channel();
    // The server stops when the handle is dropped.
    std::mem::forget(handle);
    Ok(Server::builder().to_service_builder().build(module()?, stop))
}

/// Text to text.
pub(crate) async fn raw(meter: &Meter, case: &Case) -> Result<(), Box<dyn Error>> {
    refuse_batch(case)?;
    let (module, text) = (module()?, str::from_utf8(&case.request)?);
    let call = async || {
        let (reply, _notifications) = module.raw_json_request(text, 1).await.expect("a reply");
        case.check(reply.get().as_bytes());
    };
    meter.run(call).await;
    Ok(())
}

/// Values to values.
pub(crate) async fn call(meter: &Meter, case: &Case) -> Result<(), Box<dyn Error>> {
    refuse_batch(case)?;
    let module = module()?;
    if case.name == "hello" {
        let hello = async || module.call::<_, String>("say_hello", EmptyServerParams::new()).await;
        meter.run(async || assert_eq!(hello().await.expect("a reply"), "hello")).await;
    } else {
        let add = async || module.call::<_, i64>("add", [2, 3]).await;
        meter.run(async || assert_eq!(add().await.expect("a reply"), 5)).await;
    }
    Ok(())
}

fn refuse_batch(case: &Case) -> Result<(), &'static str> {
    if case.name == "batch" { Err("a module of jsonrpsee takes no batches") } else { Ok(()) }
}
