use antiphon::{Context, Responder, Router, Server};

#[antiphon::rpc]
trait Clock {
    async fn hour(&self) -> Result<u8, antiphon::ErrorObject>;
}

struct Noon;

impl Clock for Noon {
    async fn hour(&self) -> Result<u8, antiphon::ErrorObject> {
        Ok(12)
    }
}

fn service(server: Server) {
    drop(server.serve(Noon));
}

fn state() {
    let router = Router::with_state(12).method("hour", |(): (), hour: u8, _cx: Context| async move {
        Ok(hour)
    });
    drop(Responder::new(router));
}

fn main() {}
