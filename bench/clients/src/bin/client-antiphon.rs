//! Antiphon's client.

use antiphon::Client;
use clients::{Fault, Load, check};

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let load = Load::from_args()?;
    let client = Client::connect(&load.endpoint).await?;
    load.run(move || {
        let call = client.call::<String>("say_hello", ());
        async { check(&call.await?) }
    })
    .await
}
