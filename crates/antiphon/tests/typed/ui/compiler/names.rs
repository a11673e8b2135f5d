//! Names that the macro takes for those of a contract or of the library.

use antiphon::ErrorObject;

mod own {
    pub struct Context;
    pub struct Sink;
}

pub trait Plain {}

#[antiphon::rpc(extends(Plain))]
pub trait Both {}

#[antiphon::rpc(server, extends(Plain))]
pub trait Server {}

#[antiphon::rpc(client, extends(Plain))]
pub trait Client {}

#[antiphon::rpc]
pub trait Unmarked {
    async fn context(&self, context: own::Context) -> Result<i64, ErrorObject>;

    #[subscription(item = u8)]
    async fn sink(&self, sink: own::Sink) -> Result<(), ErrorObject>;
}

fn main() {}
