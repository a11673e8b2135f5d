//! The memory of an idle session: each has made one call, and its connection is closed.
//! Afterwards each must still answer.

use std::time::Duration;

use crate::Fault;
use crate::contenders::{Contender, Load};
use crate::http_load::{Client, Session};
use crate::server::Server;
use crate::spread::Figure;

/// Sessions that are not counted: what a server sets up once does not belong to a session.
const FIRST: usize = 20;

pub(crate) async fn bytes_per_session(one: &Contender, sessions: usize) -> Result<Figure, Fault> {
    let server = Server::start_http(&one.command(Load::IdleSessions)).await?;
    open(&server, FIRST).await?;
    let before = server.private_bytes()?;
    let open = open(&server, sessions).await?;
    // Closed connections are freed soon after, by tasks of the server that nothing outside can await.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let value = server.private_bytes()?.saturating_sub(before) as f64 / sessions as f64;
    // A server that has ended sessions in the meantime would need less memory.
    for session in open {
        session.connect(&server.address).await?.add(0).await?;
    }
    Ok(Figure { value, cpu_micros: None })
}

async fn open(server: &Server, sessions: usize) -> Result<Vec<Session>, Fault> {
    let mut open = Vec::with_capacity(sessions);
    for id in 0..sessions {
        let mut client = Client::open(&server.address, false).await?;
        client.add(id as u64).await?;
        open.push(client.into_session());
    }
    Ok(open)
}
