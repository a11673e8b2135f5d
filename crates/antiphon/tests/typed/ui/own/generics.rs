use antiphon::{Client, ErrorObject, Router};
use std::sync::Arc;

#[antiphon::rpc]
pub trait Typed<T> {
    async fn add(&self, value: T) -> Result<T, ErrorObject>;
}

#[antiphon::rpc]
pub trait Math {
    async fn subtract<N: Into<i64> + Send>(&self, minuend: N) -> Result<i64, ErrorObject>;
    async fn add(&self, minuend: impl Into<i64> + Send) -> Result<i64, ErrorObject>;
    fn sized<const N: usize>(&self, values: [i64; N]) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
pub trait Associated {
    const ONE: i64;
    type Number: Into<i64>;
    async fn number(&self) -> Result<i64, ErrorObject>;
}

struct Service;

impl Typed<i64> for Service {
    async fn add(&self, value: i64) -> Result<i64, ErrorObject> {
        Ok(value)
    }
}

impl Math for Service {
    async fn subtract<N: Into<i64> + Send>(&self, minuend: N) -> Result<i64, ErrorObject> {
        Ok(minuend.into())
    }
    async fn add(&self, minuend: impl Into<i64> + Send) -> Result<i64, ErrorObject> {
        Ok(minuend.into())
    }
    fn sized<const N: usize>(&self, values: [i64; N]) -> Result<i64, ErrorObject> {
        Ok(values.iter().sum())
    }
}

impl Associated for Service {
    const ONE: i64 = 1;
    type Number = i64;
    async fn number(&self) -> Result<i64, ErrorObject> {
        Ok(Self::ONE)
    }
}

async fn calls(client: &Client) -> Result<i64, antiphon::CallError> {
    let sum = TypedClient::new(client).add(1).await? + MathClient::new(client).subtract(2).await?;
    Ok(sum + AssociatedClient::new(client).number().await?)
}

fn main() {
    let router: Router = Typed::into_router(Service).merge(Math::into_router(Arc::new(Service)));
    let router = router.merge(Associated::into_router(Service));
    drop(calls(&Client::in_process(router)));
}
