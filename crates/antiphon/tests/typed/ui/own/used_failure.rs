//! Code that uses refused errors: no error is about the use.

use antiphon::{CallError, ErrorObject, RpcError};

#[derive(Debug, PartialEq, RpcError)]
pub enum NoCode {
    Missing,
}

#[derive(Debug, RpcError)]
#[rpc(code = -32700)]
pub struct Reserved;

#[derive(Debug, RpcError)]
pub enum Generic<T> {
    #[rpc(code = 1, message = "one")]
    One(T),
}

#[antiphon::rpc]
pub trait Math {
    async fn divide(&self, a: i64, b: i64) -> Result<i64, NoCode>;
    async fn reserve(&self) -> Result<i64, Reserved>;
    async fn generic(&self) -> Result<i64, Generic<i64>>;
}

struct Service;

impl Math for Service {
    async fn divide(&self, a: i64, b: i64) -> Result<i64, NoCode> {
        a.checked_div(b).ok_or(NoCode::Missing)
    }
    async fn reserve(&self) -> Result<i64, Reserved> {
        Err(Reserved)
    }
    async fn generic(&self) -> Result<i64, Generic<i64>> {
        Err(Generic::One(1))
    }
}

async fn call(math: &MathClient) -> Option<NoCode> {
    let error: CallError = math.divide(1, 0).await.unwrap_err();
    error.as_error()
}

fn main() {
    drop(call(&MathClient::in_process(Service)));
    drop(ErrorObject::from(NoCode::Missing));
}
