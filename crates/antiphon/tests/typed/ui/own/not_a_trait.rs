#[antiphon::rpc]
pub struct Math;

impl Math {
    fn one(&self) -> i64 {
        1
    }
}

fn main() {
    Math.one();
}
