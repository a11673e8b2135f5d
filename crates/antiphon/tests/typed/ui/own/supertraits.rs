use antiphon::ErrorObject;

#[antiphon::rpc]
pub trait Cards {
    async fn count(&self) -> Result<u32, ErrorObject>;
}

#[antiphon::rpc]
pub trait Board: Send + Cards + std::fmt::Debug {}

#[antiphon::rpc(extends(Cards))]
pub trait Taken {
    async fn cards(&self) -> Result<u32, ErrorObject>;
}

fn main() {}
