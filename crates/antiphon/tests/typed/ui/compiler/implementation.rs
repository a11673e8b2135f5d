use antiphon::ErrorObject;
use std::cell::Cell;

#[antiphon::rpc]
pub trait Math {
    async fn subtract(&self, minuend: i64) -> Result<i64, ErrorObject>;
}

struct NotSync(Cell<i64>);

impl Math for NotSync {
    async fn subtract(&self, minuend: i64) -> Result<i64, ErrorObject> {
        Ok(self.0.get() - minuend)
    }
}

struct Missing;

impl Math for Missing {}

fn main() {}
