//! The toy node as a program: `interop-ethereum ENDPOINT...` prints `listening on ENDPOINT` for each endpoint
//! and serves until it is stopped.

use std::error::Error;

use antiphon::{Dialect, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut endpoints = std::env::args().skip(1);
    let first = endpoints.next().ok_or("name an endpoint, such as http://127.0.0.1:8545")?;
    let mut server = Server::bind(&*first).await?;
    for endpoint in endpoints {
        server = server.and(&*endpoint).await?;
    }
    for endpoint in server.endpoints() {
        println!("listening on {endpoint}");
    }
    server.dialect(Dialect::ethereum()).serve(interop_ethereum::node()).await?;
    Ok(())
}
