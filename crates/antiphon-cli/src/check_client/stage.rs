//! One scenario, from the start of the client to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::{Connection, Play};
use super::over::{Framing, Over};
use super::process::{Client, Ending};
use super::record::Record;
use super::scenario::Scenario;
use super::wire::Wire;

/// How long connections are read on when the client is gone.
const AFTER: Duration = Duration::from_millis(200);
/// Connections at once; a client that opens more waits for one of them to end.
const CONNECTIONS: usize = 256;

/// How scenarios are put on.
#[derive(Debug)]
pub(super) struct Stage {
    /// The command, with marks for where the server is.
    pub(super) argv: Vec<String>,
    pub(super) over: Over,
    pub(super) framing: Framing,
    /// How long the client may take.
    pub(super) limit: Duration,
    /// What ordinary answers have as their result.
    pub(super) result: Option<String>,
}

/// What was seen of a scenario.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) record: Record,
    pub(super) ending: Ending,
    pub(super) last_words: Option<String>,
}

impl Stage {
    pub(super) fn wire(&self) -> Wire {
        self.over.wire(self.framing)
    }

    /// Serves the scenario to the client; an error where the client does not even start.
    pub(super) async fn play(&self, scenario: &Scenario) -> io::Result<Seen> {
        let play = Arc::new(Play::new(scenario.script, self.wire(), self.result.clone()));
        let (door, place) = self.over.open().await?;
        let is_wire = self.over == Over::Stdio;
        let mut client = Client::start(&place.filled_in(&self.argv), scenario.about.name, is_wire)?;
        let mut connections = JoinSet::new();
        if let Some((stdin, stdout)) = client.pipes() {
            connections.spawn(Connection::pipes(Arc::clone(&play), stdin, stdout).serve());
        }
        let ending = {
            let ended = client.ended(self.limit);
            tokio::pin!(ended);
            loop {
                tokio::select! {
                    ending = &mut ended => break ending,
                    connection = door.next(&play), if connections.len() < CONNECTIONS => {
                        connections.spawn(connection?.serve());
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        };
        play.end();
        let _ = timeout(AFTER, async { while connections.join_next().await.is_some() {} }).await;
        connections.shutdown().await;
        let record = std::mem::take(&mut *play.record());
        Ok(Seen { record, ending, last_words: client.last_words().await })
    }
}
