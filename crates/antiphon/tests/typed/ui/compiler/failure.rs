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
}

fn main() {}
