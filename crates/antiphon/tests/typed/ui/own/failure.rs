use antiphon::RpcError;

#[derive(RpcError)]
pub enum Codes {
    #[rpc(code = -32601, message = "reserved")]
    Reserved,
    #[rpc(code = -32700, message = "reserved")]
    Parse,
    #[rpc(code = 1, message = "one")]
    One,
    #[rpc(code = 1, message = "one again")]
    Again,
    #[rpc(code = "1", message = "text")]
    Text,
    None,
    #[rpc(code = 2, mesage = "two")]
    Misspelt,
    #[rpc(code = 3, transparent)]
    Both(antiphon::ErrorObject),
    #[rpc(transparent)]
    Empty,
    #[rpc(code = 4, message = "four")]
    Skipped(#[rpc(skip)] u8),
}

#[derive(RpcError)]
pub enum Generic<T> {
    #[rpc(code = 1, message = "one")]
    One(T),
}

#[derive(RpcError)]
pub enum Same {
    #[rpc(code = 1, message = "one")]
    One,
    #[rpc(code = 1, message = "one again")]
    Again,
}

#[derive(RpcError)]
pub enum Misplaced {
    #[rpc(code = 1, message = "one", crate = "antiphon")]
    One,
}

#[derive(RpcError)]
#[rpc(code = 1)]
pub enum Whole {
    #[rpc(code = 2, message = "two")]
    Two,
}

#[derive(RpcError)]
#[rpc(crate = "antiphon", mesage = "a", cod = 1)]
pub struct Several;

#[derive(RpcError)]
pub enum Placeholders {
    #[rpc(code = 1, message = "no such key: {key}")]
    Missing { key: String },
    #[rpc(code = 2, message = "{0} bytes")]
    TooLarge(u64),
    #[rpc(code = 3, message = "a lone }")]
    Lone,
}

fn main() {}
