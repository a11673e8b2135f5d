//! One scenario, from the start of the client to its end.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::Connection;
use super::over::Over;
use super::play::Play;
use super::process::{Client, Ending};
use super::record::Record;
use super::scenario::Scenario;
use super::wire::Wire;
use crate::exit::{Exit, Failure};

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
    pub(super) wire: Wire,
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
    /// Serves the scenario to the client; an error where it does not even begin.
    pub(super) async fn play(&self, scenario: &Scenario) -> Result<Seen, Failure> {
        let play = Arc::new(Play::new(scenario.script, self.wire, self.result.clone()));
        let (door, place) = self.over.open(self.wire).await.map_err(|error| {
            let over = self.over.name();
            Failure::new(Exit::Transport, format!("nothing can be served over {over}: {error}"))
        })?;
        let (argv, is_wire) = (place.filled_in(&self.argv), self.over == Over::Stdio);
        let mut client = Client::start(&argv, scenario.about.name, is_wire)
            .map_err(|error| absent(&argv, &error))?;
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
                        connections.spawn(connection.serve());
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

fn absent(argv: &[String], error: &io::Error) -> Failure {
    let program = argv.first().map_or("", String::as_str);
    let failure = Failure::new(Exit::Transport, format!("`{program}` does not start: {error}"));
    match error.kind() {
        ErrorKind::NotFound => failure.hint("check that the command is installed and on the PATH"),
        _ => failure,
    }
}
