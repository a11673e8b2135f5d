#[antiphon::rpc]
pub trait Math {
    async fn subtract(minuend: i64) -> Result<i64, antiphon::ErrorObject>;
    async fn change(&mut self) -> Result<i64, antiphon::ErrorObject>;
    async fn spend(self) -> Result<i64, antiphon::ErrorObject>;
}

fn main() {}
