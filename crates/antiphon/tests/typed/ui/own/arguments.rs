use antiphon::{Context, ErrorObject, Sink};

#[antiphon::rpc]
pub trait Math {
    async fn pattern(&self, (a, b): (i64, i64)) -> Result<i64, ErrorObject>;
    async fn borrowed(&self, name: &str) -> Result<i64, ErrorObject>;
    async fn contexts(&self, one: Context, two: Context) -> Result<i64, ErrorObject>;
    async fn context(&self, cx: &Context) -> Result<i64, ErrorObject>;
    async fn attribute(&self, #[serde(default)] a: i64) -> Result<i64, ErrorObject>;
    async fn option(&self, #[param(defualt = 1)] a: i64) -> Result<i64, ErrorObject>;
    async fn whole(&self, #[params] a: Vec<i64>, b: i64) -> Result<i64, ErrorObject>;
    async fn twice(&self, a: i64, #[param(name = "a")] b: i64) -> Result<i64, ErrorObject>;
    async fn sink(&self, sink: Sink) -> Result<i64, ErrorObject>;
    async fn mutable(&self, mut a: i64) -> Result<i64, ErrorObject>;
}

fn main() {}
