use antiphon::ErrorObject;

#[antiphon::rpc]
pub trait Math {
    async fn subtract(&self) -> Result<i64, ErrorObject>;
    #[method(name = "subtract")]
    async fn minus(&self) -> Result<i64, ErrorObject>;
    #[method(aliases = ["minus"])]
    async fn difference(&self) -> Result<i64, ErrorObject>;
    #[method(name = "rpc.discover")]
    async fn discover(&self) -> Result<i64, ErrorObject>;
    #[method(name = "")]
    async fn empty(&self) -> Result<i64, ErrorObject>;
    async fn new(&self) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
pub trait Alias {
    async fn one(&self) -> Result<i64, ErrorObject>;
    #[method(aliases = ["one"])]
    async fn two(&self) -> Result<i64, ErrorObject>;
    #[notification(name = "two")]
    async fn three(&self);
}

#[antiphon::rpc]
pub trait Reserved {
    async fn in_process(&self) -> Result<i64, ErrorObject>;
    #[allow(non_snake_case)]
    async fn IDEMPOTENT(&self) -> Result<i64, ErrorObject>;
    async fn __into_router(&self) -> Result<i64, ErrorObject>;
    async fn __serve(&self) -> Result<i64, ErrorObject>;
}

fn main() {}
