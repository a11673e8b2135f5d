use antiphon::{BoxFuture, ErrorObject};
use std::pin::Pin;

type Answer<T> = Result<T, ErrorObject>;

#[antiphon::rpc]
pub trait Math {
    async fn alias(&self) -> Answer<i64>;
    fn future(&self) -> impl Future<Output = Answer<i64>> + Send;
    fn boxed(&self) -> BoxFuture<'_, Answer<i64>>;
    #[notification]
    fn pinned(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    #[cfg_attr(all(), doc = "Conditional.", method(name = "b"))]
    async fn conditional(&self) -> Result<i64, ErrorObject>;
    async fn nothing(&self);
    async fn plain(&self) -> i64;
    #[notification]
    async fn update(&self) -> Result<(), antiphon::ErrorObject>;
}

fn main() {}
