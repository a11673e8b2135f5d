//! `antiphon notify`: sends a notification. It has no response, so nothing is printed.

use antiphon::Invocation;
use clap::Args;

use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::params::ParamArgs;

/// Send a notification, which has no response
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Method of the notification
    method: String,
    #[command(flatten)]
    params: ParamArgs,
}

const EXAMPLES: &str = "\
Examples:
  antiphon notify http://127.0.0.1:8650 update 1 2 3 4 5
  antiphon notify ws://127.0.0.1:8650 notify_hello name=ada
  antiphon notify unix:/run/app.sock log -d @entry.json
  antiphon notify -v tcp+header://127.0.0.1:4000 exit

The exit code is 0 if the message was sent. A notification has no response, so
it does not show whether the server knows the method.";

pub(crate) async fn run(args: NotifyArgs) -> Result<Exit, CommandError> {
    let notification = Invocation::new(&args.method, args.params.read()?);
    args.connect
        .with_client(
            |_, _| {},
            async |connection| Ok(connection.client.caller().post(notification).await?),
            |()| Ok(Exit::Success),
        )
        .await
}
