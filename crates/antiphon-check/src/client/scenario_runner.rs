//! The run of one scenario, from the start of the client to its end.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client_process::{ClientExit, ClientProcess};
use super::codec::ClientWire;
use super::connection::ClientConnection;
use super::listener::ClientTransport;
use super::record::ScenarioRecord;
use super::scenario::Scenario;
use super::scenario_state::ScenarioState;
use crate::error::{CheckError, CheckErrorKind};

/// The time to read the connections on after the client ended.
const AFTER: Duration = Duration::from_millis(200);
/// The limit of connections at once. Further connections wait.
const CONNECTIONS: usize = 256;

/// Runs scenarios.
#[derive(Debug)]
pub(super) struct ScenarioRunner {
    /// The command, with placeholders for the address.
    pub(super) argv: Vec<String>,
    pub(super) transport: ClientTransport,
    pub(super) wire: ClientWire,
    /// The time limit of the client.
    pub(super) limit: Duration,
    /// The result of ordinary responses.
    pub(super) result: Option<String>,
}

/// The observation of one scenario.
#[derive(Debug)]
pub(super) struct ScenarioObservation {
    pub(super) record: ScenarioRecord,
    pub(super) ending: ClientExit,
    pub(super) last_error: Option<String>,
}

impl ScenarioRunner {
    /// Serves the scenario to the client. Fails if the client does not start.
    pub(super) async fn run(&self, scenario: &Scenario) -> Result<ScenarioObservation, CheckError> {
        let state = Arc::new(ScenarioState::new(scenario.script, self.wire, self.result.clone()));
        let (listener, address) = self.transport.listen(self.wire).await.map_err(|error| {
            let transport = self.transport.name();
            CheckError::new(
                CheckErrorKind::Unreachable,
                format!("cannot listen on {transport}: {error}"),
            )
        })?;
        let (argv, is_wire) =
            (address.filled_in(&self.argv), self.transport == ClientTransport::Stdio);
        let mut client = ClientProcess::start(&argv, scenario.about.name, is_wire)
            .map_err(|error| absent(&argv, &error))?;
        let mut connections = JoinSet::new();
        if let Some((stdin, stdout)) = client.pipes() {
            connections.spawn(ClientConnection::pipes(Arc::clone(&state), stdin, stdout).serve());
        }
        let ending = {
            let ended = client.wait(self.limit);
            tokio::pin!(ended);
            loop {
                tokio::select! {
                    ending = &mut ended => break ending,
                    connection = listener.next(&state), if connections.len() < CONNECTIONS => {
                        connections.spawn(connection.serve());
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        };
        state.end();
        let _ = timeout(AFTER, async { while connections.join_next().await.is_some() {} }).await;
        connections.shutdown().await;
        let record = std::mem::take(&mut *state.record());
        Ok(ScenarioObservation { record, ending, last_error: client.last_error().await })
    }
}

fn absent(argv: &[String], error: &io::Error) -> CheckError {
    let program = argv.first().map_or("", String::as_str);
    let failure = CheckError::new(
        CheckErrorKind::Unreachable,
        format!("`{program}` does not start: {error}"),
    );
    match error.kind() {
        ErrorKind::NotFound => failure.hint("check that the command is installed and on the PATH"),
        _ => failure,
    }
}
