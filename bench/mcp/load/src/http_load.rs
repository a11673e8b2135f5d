//! Calls over HTTP: connections that stay open, each with one call in flight.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use futures_util::future::try_join_all;

use crate::contenders::{Contender, Load};
use crate::http::Connection;
use crate::messages::{INITIALIZED, LEGACY, MODERN, call, check, initialize, last_event};
use crate::server::Server;
use crate::spread::Figure;
use crate::{Fault, Options};

const CONNECTIONS: u64 = 64;

pub(crate) async fn calls_per_second(
    one: &Contender,
    load: Load,
    options: &Options,
) -> Result<Figure, Fault> {
    let server = Server::start_http(&one.command(load)).await?;
    let open = (0..CONNECTIONS).map(|_| Client::open(&server.address, load.is_modern()));
    let clients = try_join_all(open).await?;
    let round = Rc::new(Round::new(options));
    let calls = clients
        .into_iter()
        .zip(0..)
        .map(|(client, number)| call_until_the_end(client, number, &round));
    let observe = async {
        tokio::time::sleep_until(round.start.into()).await;
        server.cpu_micros()
    };
    let (before, _) = tokio::try_join!(observe, try_join_all(calls))?;
    let count = round.count.get() as f64;
    let cpu_micros = Some((server.cpu_micros()? - before) / count);
    Ok(Figure { value: count / options.span.as_secs_f64(), cpu_micros })
}

/// The time of a measurement, and the calls in it.
struct Round {
    start: Instant,
    end: Instant,
    count: Cell<u64>,
}

impl Round {
    fn new(options: &Options) -> Self {
        let start = Instant::now() + options.warm_up;
        Self { start, end: start + options.span, count: Cell::new(0) }
    }
}

/// Ids are different in all connections, and so are sums.
async fn call_until_the_end(mut client: Client, number: u64, round: &Round) -> Result<(), Fault> {
    let mut id = number;
    while Instant::now() < round.end {
        client.add(id).await?;
        id += CONNECTIONS;
        if Instant::now() >= round.start {
            round.count.set(round.count.get() + 1);
        }
    }
    Ok(())
}

/// A connection, with its session in the legacy era.
pub(crate) struct Client {
    connection: Connection,
    session: Session,
}

/// The beginning of every request of a client.
pub(crate) struct Session {
    head: String,
    modern: bool,
}

impl Session {
    /// Continues on a new connection.
    pub(crate) async fn connect(self, address: &str) -> Result<Client, Fault> {
        Ok(Client { connection: Connection::open(address).await?, session: self })
    }
}

impl Client {
    pub(crate) async fn open(address: &str, modern: bool) -> Result<Self, Fault> {
        let mut connection = Connection::open(address).await?;
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        );
        if modern {
            head += &format!(
                "mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: add\r\n"
            );
        } else {
            let response = connection.exchange(&request(&head, &initialize())).await?;
            expect(response.status, 200)?;
            head += &format!("mcp-protocol-version: {LEGACY}\r\n");
            if let Some(session) = response.session {
                head += &format!("mcp-session-id: {session}\r\n");
            }
            let response = connection.exchange(&request(&head, INITIALIZED)).await?;
            expect(response.status, 202)?;
        }
        Ok(Self { connection, session: Session { head, modern } })
    }

    /// Closes the connection; the session goes on.
    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    pub(crate) async fn add(&mut self, id: u64) -> Result<(), Fault> {
        let request = request(&self.session.head, &call(id, self.session.modern));
        let response = self.connection.exchange(&request).await?;
        let reply =
            if response.is_event_stream { last_event(&response.body)? } else { &response.body };
        match check(reply)? {
            answered if answered == id => Ok(()),
            answered => Err(format!("the reply to {answered} instead of {id}").into()),
        }
    }
}

fn request(head: &str, body: &str) -> Vec<u8> {
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn expect(status: u16, wanted: u16) -> Result<(), Fault> {
    if status == wanted {
        Ok(())
    } else {
        Err(format!("status {status} instead of {wanted}").into())
    }
}
