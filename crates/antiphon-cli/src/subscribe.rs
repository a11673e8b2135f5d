//! `antiphon subscribe`: prints the items of a subscription, one per line.

use antiphon::{
    CallError, ErrorChain, Params, RawJson, Reconnect, Subscription, SubscriptionError, Topic,
};
use clap::Args;
use futures_util::StreamExt as _;
use tokio::signal::ctrl_c;
use tokio::time::timeout;

use crate::connect::{CLOSE_TIMEOUT, ConnectArgs};
use crate::dialect::DialectName;
use crate::exit::{CommandError, Exit};
use crate::output;
use crate::params::ParamArgs;

/// Subscribe and print each item on one line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Method that starts the subscription; with --dialect ethereum also a kind, such as newHeads
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// Stop after this many items
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = item_count)]
    count: Option<u64>,
    /// Method that ends the subscription [default: METHOD, with `subscribe` replaced by `unsubscribe`]
    #[arg(long, value_name = "NAME")]
    unsubscribe: Option<String>,
    /// Reconnect and subscribe again after the connection is lost
    #[arg(long)]
    reconnect: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon subscribe ws://127.0.0.1:8650 subscribe_ticks 100 --count 5
  antiphon subscribe ws://127.0.0.1:8546 eth_subscribe newHeads | jq .number
  antiphon subscribe --dialect ethereum ws://127.0.0.1:8546 newHeads --reconnect
  antiphon subscribe --dialect ethereum unix:/tmp/geth.ipc logs address=0x...
  antiphon subscribe unix:/run/app.sock watch --unsubscribe unwatch

Each item is one line of JSON on stdout. --timeout applies to the connection
and to the first reply, not to items. Ctrl-C unsubscribes before it exits. Lost
items are reported on stderr. HTTP has no subscriptions: use ws:// instead.

With --dialect ethereum, a METHOD without `_` is a kind of subscription:
newHeads, logs, newPendingTransactions or syncing. Named params are its filter.";

fn item_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a count; use a whole number such as 5"))
}

pub(crate) async fn run(args: SubscribeArgs) -> Result<Exit, CommandError> {
    let SubscribeCall { method, params } = args.subscribe_call()?;
    let topic = Topic::with_names(&method, "", &args.unsubscribe_method(&method)?);
    let reconnect = args.reconnect.then(Reconnect::new);
    let connection = args.connect.connect(reconnect, None).await?;
    let reply = async { connection.client.subscribe::<RawJson>(topic, &params).await };
    let reply = args.connect.in_time(reply).await;
    let failed = |error| subscribe_failed(error, args.connect.dialect());
    let exit = match reply.and_then(|reply| reply.map_err(failed)) {
        Ok(items) => show(items, args.count).await.unwrap_or_else(CommandError::report),
        Err(failure) => failure.report(),
    };
    args.connect.close(connection).await;
    Ok(exit)
}

/// The call that subscribes.
struct SubscribeCall {
    method: String,
    params: Option<RawJson>,
}

impl SubscribeArgs {
    /// Returns the call, after the names of the dialect are applied.
    fn subscribe_call(&self) -> Result<SubscribeCall, CommandError> {
        let (method, params) = (self.method.clone(), self.params.read()?);
        let is_kind = self.connect.dialect() == Some(DialectName::Ethereum)
            // Every method of a node has the form `namespace_name`.
            && !method.contains('_');
        if !is_kind {
            return Ok(SubscribeCall { method, params: params.map(Params::into_json) });
        }
        let params = kind_params(&method, params);
        let params = params.map_err(|error| CommandError::usage(error.to_string()))?;
        Ok(SubscribeCall { method: "eth_subscribe".to_owned(), params: Some(params) })
    }

    fn unsubscribe_method(&self, method: &str) -> Result<String, CommandError> {
        if let Some(name) = &self.unsubscribe {
            return Ok(name.clone());
        }
        opposite(method).ok_or_else(|| {
            let what = format!("cannot derive the unsubscribe method from `{method}`");
            CommandError::usage(what).hint("name it with --unsubscribe NAME")
        })
    }
}

/// Returns the params of `eth_subscribe`: the kind, then the other params by position. Named params form one param, the
/// filter.
fn kind_params(kind: &str, others: Option<Params>) -> Result<RawJson, serde_json::Error> {
    let others = match others.map(Params::into_json) {
        None => Vec::new(),
        Some(array) if array.as_str().starts_with('[') => array.decode::<Vec<RawJson>>()?,
        Some(filter) => vec![filter],
    };
    let all: Vec<_> = std::iter::once(RawJson::encode(kind)?).chain(others).collect();
    RawJson::encode(&all)
}

/// Returns `unsubscribe_x` for `subscribe_x`, `eth_unsubscribe` for `eth_subscribe`, `unsubscribeX`
/// for `subscribeX`.
fn opposite(method: &str) -> Option<String> {
    let (word, opposite) = [("subscribe", "unsubscribe"), ("Subscribe", "Unsubscribe")]
        .into_iter()
        .find(|(word, _)| method.contains(word))?;
    let at = method.rfind(word)?;
    Some(format!("{}{opposite}{}", &method[..at], &method[at + word.len()..]))
}

fn subscribe_failed(error: CallError, dialect: Option<DialectName>) -> CommandError {
    let hint = match dialect {
        Some(DialectName::Ethereum) => {
            "use ws:// or wss://, or unix: for IPC; geth has WebSockets on port 8546, anvil on its HTTP port"
        }
        _ => "use ws:// or wss:// if the server accepts WebSockets on this port",
    };
    match error {
        CallError::CannotCallBack(_) => CommandError::caused(Exit::Transport, &error).hint(hint),
        other => other.into(),
    }
}

/// Prints items until `count` is reached, the source ends or Ctrl-C is pressed, then unsubscribes.
async fn show(mut items: Subscription<RawJson>, count: Option<u64>) -> Result<Exit, CommandError> {
    let mut left = count.unwrap_or(u64::MAX);
    // One future for the whole loop: a new one per iteration could miss a signal in between.
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
                // The reader of stdout has gone, so it needs no more items.
                if !output::item(&item)? {
                    break;
                }
            }
            Some(Err(notice @ (SubscriptionError::Lost(_) | SubscriptionError::Gap(_)))) => {
                output::note(&output::dim(&output::visible(&ErrorChain(&notice).to_string())));
            }
            Some(Err(error)) => return Err(ended(error)),
            None => {
                let reason = items.end_reason();
                let reason = reason.unwrap_or_else(|| "the subscription has ended".to_owned());
                output::note(&output::dim(&output::visible(&reason)));
                return Ok(exit);
            }
        }
    }
    let _ = timeout(CLOSE_TIMEOUT, items.unsubscribe()).await;
    Ok(exit)
}

fn ended(error: SubscriptionError) -> CommandError {
    match error {
        SubscriptionError::Failed(error) => error.into(),
        SubscriptionError::Disconnected(_) => CommandError::caused(Exit::Transport, &error)
            .hint("--reconnect connects again after a lost connection"),
        other => CommandError::caused(Exit::Protocol, &other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_params_of_a_kind_follow_it() {
        let params = |text: &str| Params::from_json(RawJson::parse(text.to_owned()).unwrap()).ok();
        for (others, all) in [
            (None, r#"["logs"]"#),
            (params("[]"), r#"["logs"]"#),
            (params("[ true, 1.50 ]"), r#"["logs",true,1.50]"#),
            (params(r#"{"address":"0x1"}"#), r#"["logs",{"address":"0x1"}]"#),
        ] {
            assert_eq!(kind_params("logs", others).unwrap().as_str(), all);
        }
    }

    #[test]
    fn the_unsubscribe_method_is_derived_from_the_subscribe_method() {
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
