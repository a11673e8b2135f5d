#[antiphon::rpc]
pub struct Math;

#[antiphon::rpc]
pub trait Constant {
    const ONE: i64;
    type Number;
}

fn main() {}
