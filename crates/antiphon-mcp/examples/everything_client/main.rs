//! A client that does what each scenario of the MCP conformance suite asks for.
//!
//! The suite starts it as `everything_client URL`, and names the scenario and the revision in environment variables.
//! `interop/mcp/conformance client` runs all scenarios.

mod answers;
mod connect;
mod oauth;
mod scenario;
mod steps;

use std::error::Error;
use std::process::ExitCode;

use antiphon::ErrorChain;

use self::scenario::Scenario;

/// The error of a step, of any type.
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everything_client: {}", ErrorChain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let scenario = Scenario::from_environment()?;
    let client = connect::connect(&scenario).await?;
    let outcome = steps::run(&client, &scenario).await;
    client.close().await;
    outcome
}
