use antiphon::ErrorObject;

#[antiphon::rpc(namspace = "math")]
pub trait Misspelt {}

#[antiphon::rpc(params = "by_number")]
pub trait Params {}

#[antiphon::rpc(unknown_params = "maybe")]
pub trait Unknown {}

#[antiphon::rpc(rename_all = "kebab-case")]
pub trait Case {}

#[antiphon::rpc]
pub trait Methods {
    #[method(nam = "a")]
    async fn unknown(&self) -> Result<i64, ErrorObject>;
    #[method]
    #[notification]
    async fn both(&self);
    #[method(name = "a")]
    #[method(name = "b")]
    async fn twice(&self) -> Result<i64, ErrorObject>;
    #[notification(idempotent)]
    async fn idempotent(&self);
    #[method(blocking)]
    async fn blocks(&self) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc(extends(1))]
pub trait Number {}

#[antiphon::rpc(extends(A B))]
pub trait Comma {}

#[antiphon::rpc(namespace = "a" client)]
pub trait NoComma {}

#[antiphon::rpc]
pub trait Several {
    #[method(aliases = [1, 2], nam = "a")]
    async fn two(&self) -> Result<i64, ErrorObject>;
    #[method(name = "b" idempotent)]
    async fn no_comma(&self) -> Result<i64, ErrorObject>;
}

fn main() {}
