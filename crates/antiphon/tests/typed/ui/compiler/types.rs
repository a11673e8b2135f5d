use antiphon::ErrorObject;

pub struct Opaque;

#[antiphon::rpc(server)]
pub trait Takes {
    async fn take(&self, what: Opaque) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc(server)]
pub trait Gives {
    async fn give(&self) -> Result<Opaque, ErrorObject>;
}

#[antiphon::rpc(server)]
pub trait Fails {
    async fn fail(&self) -> Result<i64, Opaque>;
}

fn main() {}
