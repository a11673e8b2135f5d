#[antiphon::rpc]
pub trait Math {
    fn subtract(&self, minuend: i64) -> Result<i64, antiphon::ErrorObject>;
}

fn main() {}
