#[antiphon::rpc]
pub trait Math<T> {
    async fn subtract<N: Into<i64>>(&self, minuend: N) -> Result<i64, antiphon::ErrorObject>;
    async fn add(&self, minuend: impl Into<i64>) -> Result<i64, antiphon::ErrorObject>;
}

fn main() {}
