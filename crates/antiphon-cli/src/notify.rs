//! `antiphon notify`: one notification. Nothing comes back, so nothing is printed.

use antiphon::Invocation;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::params::ParamArgs;
use crate::remote::Remote;

/// Send a notification, which is never answered
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyArgs {
    #[command(flatten)]
    remote: Remote,
    /// The method to notify
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

It succeeds when the message is sent. Whether the other side knows the method, it does not say.";

pub(crate) async fn run(args: NotifyArgs) -> Result<Exit, Failure> {
    let notification = Invocation::new(&args.method, args.params.read()?);
    args.remote
        .talk(
            |_, _| {},
            async |client| client.caller().post(notification).await,
            |()| Ok(Exit::Success),
        )
        .await
}
