#[antiphon::rpc]
pub trait Math {
    async fn nothing(&self);
    async fn plain(&self) -> i64;
    #[notification]
    async fn update(&self) -> Result<(), antiphon::ErrorObject>;
}

fn main() {}
