//! `antiphon subscribe`: the items of a subscription, one line each, until there is enough of them.

use antiphon::{CallError, Client, RawJson, Reconnect, Subscription, SubscriptionError, Topic};
use clap::Args;
use futures_util::StreamExt as _;
use tokio::signal::ctrl_c;
use tokio::time::timeout;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::params::ParamArgs;
use crate::remote::{LEAVE, Remote};

/// Subscribe, and print each item on a line of its own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    remote: Remote,
    /// The method that begins the subscription
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// Stop after so many items
    #[arg(long, short = 'n', value_name = "COUNT")]
    count: Option<u64>,
    /// The method that ends the subscription; found by itself where METHOD says `subscribe`
    #[arg(long, value_name = "NAME")]
    unsubscribe: Option<String>,
    /// Connect and subscribe again when the connection is lost
    #[arg(long)]
    reconnect: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon subscribe ws://127.0.0.1:8650 subscribe_ticks 100 --count 5
  antiphon subscribe ws://node:8546 eth_subscribe newHeads | jq .number
  antiphon subscribe ws://node:8546 eth_subscribe logs '{\"address\":\"0x...\"}' --reconnect
  antiphon subscribe unix:/run/app.sock chain_follow --unsubscribe chain_unfollow

Each item is one line of JSON, as it came. --timeout is for the connection and the reply; items are
waited for as long as it takes. Ctrl-C unsubscribes first. Over HTTP there are no subscriptions.
That items were lost, or may have been while there was no connection, is said on stderr.";

pub(crate) async fn run(args: SubscribeArgs) -> Result<Exit, Failure> {
    let topic = Topic::new(&args.method, "", &args.end()?);
    let params = args.params.read()?;
    let params = params.map(antiphon::Params::into_json);
    let reconnect = args.reconnect.then(Reconnect::new);
    let client = args.remote.reach(reconnect).await?;
    let asked = async { client.subscribe::<RawJson>(topic, &params).await };
    let exit = match args.remote.in_time(asked).await.and_then(|asked| asked.map_err(not_begun)) {
        Ok(items) => show(items, args.count).await.unwrap_or_else(Failure::report),
        Err(failure) => failure.report(),
    };
    leave(client).await;
    Ok(exit)
}

impl SubscribeArgs {
    /// The name of the method that ends it.
    fn end(&self) -> Result<String, Failure> {
        if let Some(name) = &self.unsubscribe {
            return Ok(name.clone());
        }
        opposite(&self.method).ok_or_else(|| {
            let what = format!("`{}` does not say how the subscription is ended", self.method);
            Failure::usage(what).hint("name the method that ends it: --unsubscribe NAME")
        })
    }
}

/// `unsubscribe_x` for `subscribe_x`, `eth_unsubscribe` for `eth_subscribe`, `unsubscribeX` for
/// `subscribeX`.
fn opposite(method: &str) -> Option<String> {
    let (word, opposite) = [("subscribe", "unsubscribe"), ("Subscribe", "Unsubscribe")]
        .into_iter()
        .find(|(word, _)| method.contains(word))?;
    let at = method.rfind(word)?;
    Some(format!("{}{opposite}{}", &method[..at], &method[at + word.len()..]))
}

fn not_begun(error: CallError) -> Failure {
    match error {
        CallError::NoWayBack(_) => Failure::new(Exit::Transport, error.to_string())
            .hint("a server that takes WebSockets on the same port is reached by ws:// or wss://"),
        other => other.into(),
    }
}

/// Prints items until there are enough, until the source ends, or until Ctrl-C; then unsubscribes.
async fn show(mut items: Subscription<RawJson>, count: Option<u64>) -> Result<Exit, Failure> {
    let mut left = count.unwrap_or(u64::MAX);
    // One for all turns: a new one would not hear what came between.
    let mut interrupted = Box::pin(ctrl_c());
    let mut exit = Exit::Success;
    while left > 0 {
        let next = tokio::select! {
            next = items.next() => next,
            _ = &mut interrupted => {
                exit = Exit::Interrupted;
                break;
            }
        };
        match next {
            Some(Ok(item)) => {
                left -= 1;
                // Whoever read the items has gone: there are enough.
                if !output::item(&item)? {
                    break;
                }
            }
            Some(Err(notice @ (SubscriptionError::Lost(_) | SubscriptionError::Gap(_)))) => {
                output::note(&output::dim(&output::visible(&notice.to_string())));
            }
            Some(Err(error)) => return Err(ended(error)),
            None => {
                let reason = items.end_reason().unwrap_or_else(|| "it has ended".to_owned());
                output::note(&output::dim(&output::visible(&reason)));
                return Ok(exit);
            }
        }
    }
    let _ = timeout(LEAVE, items.unsubscribe()).await;
    Ok(exit)
}

fn ended(error: SubscriptionError) -> Failure {
    match error {
        SubscriptionError::Failed(error) => error.into(),
        SubscriptionError::Disconnected(_) => Failure::new(Exit::Transport, error.to_string())
            .hint("--reconnect goes on after a lost connection"),
        other => Failure::new(Exit::Protocol, other.to_string()),
    }
}

async fn leave(client: Client) {
    let _ = timeout(LEAVE, client.close()).await;
}

#[cfg(test)]
mod tests {
    use super::opposite;

    #[test]
    fn the_end_is_named_after_the_beginning() {
        for (begin, end) in [
            ("subscribe_ticks", "unsubscribe_ticks"),
            ("eth_subscribe", "eth_unsubscribe"),
            ("clock.subscribe_ticks", "clock.unsubscribe_ticks"),
            ("chain_subscribeNewHeads", "chain_unsubscribeNewHeads"),
            ("accountSubscribe", "accountUnsubscribe"),
        ] {
            assert_eq!(opposite(begin).as_deref(), Some(end));
        }
        assert_eq!(opposite("watch"), None);
    }
}
