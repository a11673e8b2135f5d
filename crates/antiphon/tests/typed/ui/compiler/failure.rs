use antiphon::RpcError;

#[derive(RpcError)]
pub enum Silent {
    #[rpc(code = 1)]
    One,
}

#[derive(RpcError)]
pub enum Closed {
    #[rpc(code = 1, message = "one")]
    One(std::sync::mpsc::RecvError),
    #[rpc(code = 2, message = "two")]
    Two(u32, std::sync::mpsc::TryRecvError),
    #[rpc(code = 3, message = "three")]
    Three { cause: std::fmt::Error },
}

fn main() {}
