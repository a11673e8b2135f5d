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

fn main() {}
