use antiphon::ErrorObject;
use std::pin::Pin;

/// What `#[async_trait]` makes of a contract, if it is above `#[rpc]`.
#[antiphon::rpc]
pub trait Math {
    fn one<'life0, 'async_trait>(
        &'life0 self,
    ) -> Pin<Box<dyn Future<Output = Result<i64, ErrorObject>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait;
}

struct Service;

impl Math for Service {
    fn one<'life0, 'async_trait>(
        &'life0 self,
    ) -> Pin<Box<dyn Future<Output = Result<i64, ErrorObject>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async { Ok(1) })
    }
}

fn main() {
    drop(MathClient::in_process(Service).one());
}
