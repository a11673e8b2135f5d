//! The flags of [`Limits`]: one flag and one environment variable per field.

use antiphon::Limits;
use clap::{Arg, Args};

use crate::quantity::{Count, MaybeSpan, Size, Span};

/// The limits of a connection, for clients and servers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectionLimits {
    /// Reject a received message larger than this many bytes
    #[arg(long, env = "ANTIPHON_MAX_FRAME_BYTES", value_name = "SIZE", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Size(Limits::default().frame_bytes))]
    max_frame_bytes: Size,
    /// Reject a received batch with more entries than this
    #[arg(long, env = "ANTIPHON_MAX_BATCH_ENTRIES", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().batch_entries))]
    max_batch_entries: Count,
    /// Reject JSON nested deeper than this many levels
    #[arg(long, env = "ANTIPHON_MAX_DEPTH", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().depth))]
    max_depth: Count,
    /// Limit the requests that run at once on each connection
    #[arg(long, env = "ANTIPHON_MAX_IN_FLIGHT", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().in_flight))]
    max_in_flight: Count,
    /// Limit the messages that wait to be handled on each connection
    #[arg(
        long,
        env = "ANTIPHON_MAX_QUEUED_MESSAGES",
        value_name = "COUNT",
        hide_short_help = true
    )]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().queued_messages))]
    max_queued_messages: Count,
    /// Limit the outgoing calls that wait for a reply on each connection
    #[arg(long, env = "ANTIPHON_MAX_PENDING_CALLS", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().pending_calls))]
    max_pending_calls: Count,
    /// Replace a response larger than this many bytes with an error
    #[arg(long, env = "ANTIPHON_MAX_RESPONSE_BYTES", value_name = "SIZE", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Size(Limits::default().response_bytes))]
    max_response_bytes: Size,
    /// Apply backpressure when this many bytes wait to be written on a connection
    #[arg(
        long,
        env = "ANTIPHON_MAX_WRITE_QUEUE_BYTES",
        value_name = "SIZE",
        hide_short_help = true
    )]
    #[arg(help_heading = "Limits", default_value_t = Size(Limits::default().write_queue_bytes))]
    max_write_queue_bytes: Size,
    /// Close a connection that has not completed its handshake after this long
    #[arg(long, env = "ANTIPHON_HANDSHAKE_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Span(Limits::default().handshake_timeout))]
    handshake_timeout: Span,
    /// Close a connection after this long without progress in the middle of a message
    #[arg(long, env = "ANTIPHON_STALL_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Span(Limits::default().stall_timeout))]
    stall_timeout: Span,
    /// Close a connection after this much idle time; 0 or none disables it
    #[arg(long, env = "ANTIPHON_IDLE_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = MaybeSpan(Limits::default().idle_timeout))]
    idle_timeout: MaybeSpan,
    /// Send a ping after this much idle time; 0 or none disables it
    #[arg(long, env = "ANTIPHON_KEEP_ALIVE", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = MaybeSpan(Limits::default().keep_alive))]
    keep_alive: MaybeSpan,
}

/// The limits of a server and its connections.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerLimits {
    #[command(flatten)]
    connection: ConnectionLimits,
    /// Limit the number of open connections
    #[arg(long, env = "ANTIPHON_MAX_CONNECTIONS", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().connections))]
    max_connections: Count,
    /// Limit the active subscriptions on each connection
    #[arg(long, env = "ANTIPHON_MAX_SUBSCRIPTIONS", value_name = "COUNT", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Count(Limits::default().subscriptions))]
    max_subscriptions: Count,
    /// Cancel a request or batch after this long; 0 or none disables it
    #[arg(long, env = "ANTIPHON_REQUEST_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = MaybeSpan(Limits::default().request_timeout))]
    request_timeout: MaybeSpan,
    /// Wait at most this long for running requests at shutdown; 0 or none cancels them at once
    #[arg(long, env = "ANTIPHON_SHUTDOWN_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[arg(help_heading = "Limits", default_value_t = Limits::default().shutdown_timeout.into())]
    shutdown_timeout: MaybeSpan,
}

/// Gives a flag of [`ServerLimits`] the defaults of the dialects that have another one.
pub(crate) fn with_dialect_default(flag: Arg) -> Arg {
    let defaults: &[_] = match flag.get_id().as_str() {
        "max_frame_bytes" => &[("ethereum", "5MiB"), ("lsp", "256MiB")],
        "max_batch_entries" => &[("ethereum", "1000")],
        "max_response_bytes" => &[("ethereum", "25000000"), ("lsp", "256MiB")],
        "stall_timeout" => &[("lsp", "8760h")],
        "shutdown_timeout" => &[("lsp", "1s")],
        _ => return flag,
    };
    flag.default_value_ifs(defaults.iter().map(|&(dialect, value)| ("dialect", dialect, value)))
}

impl ConnectionLimits {
    pub(crate) fn limits(&self) -> Limits {
        let Limits { connections, subscriptions, request_timeout, shutdown_timeout, .. } =
            Limits::default();
        // Every field is named, so a new one does not compile without a flag.
        Limits {
            frame_bytes: self.max_frame_bytes.0,
            batch_entries: self.max_batch_entries.0,
            depth: self.max_depth.0,
            in_flight: self.max_in_flight.0,
            queued_messages: self.max_queued_messages.0,
            pending_calls: self.max_pending_calls.0,
            response_bytes: self.max_response_bytes.0,
            write_queue_bytes: self.max_write_queue_bytes.0,
            handshake_timeout: self.handshake_timeout.0,
            stall_timeout: self.stall_timeout.0,
            idle_timeout: self.idle_timeout.0,
            keep_alive: self.keep_alive.0,
            connections,
            subscriptions,
            request_timeout,
            shutdown_timeout,
        }
    }
}

impl ServerLimits {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections.0,
            subscriptions: self.max_subscriptions.0,
            request_timeout: self.request_timeout.0,
            shutdown_timeout: self.shutdown_timeout.0.unwrap_or_default(),
            ..self.connection.limits()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon::Dialect;
    use clap::{CommandFactory as _, Parser};
    use std::time::Duration;

    use crate::dialect::DialectName;

    #[derive(Parser)]
    #[command(mut_args(with_dialect_default))]
    struct Flags {
        #[arg(long, value_enum)]
        dialect: Option<DialectName>,
        #[command(flatten)]
        limits: ServerLimits,
    }

    fn limits(flags: &[&str]) -> Limits {
        let words = std::iter::once("test").chain(flags.iter().copied());
        Flags::try_parse_from(words).unwrap().limits.limits()
    }

    #[test]
    fn each_flag_sets_its_field() {
        let flags = "--max-frame-bytes=1k --max-batch-entries=2 --max-depth=3 --max-in-flight=4 \
                     --max-pending-calls=5 --max-response-bytes=6k --max-write-queue-bytes=7k \
                     --max-connections=8 --max-subscriptions=14 --request-timeout=9s --handshake-timeout=10s \
                     --max-queued-messages=16 --stall-timeout=11s --idle-timeout=12s --keep-alive=15s --shutdown-timeout=13s";
        let expected = Limits {
            frame_bytes: 1 << 10,
            batch_entries: 2,
            depth: 3,
            in_flight: 4,
            queued_messages: 16,
            pending_calls: 5,
            response_bytes: 6 << 10,
            write_queue_bytes: 7 << 10,
            connections: 8,
            subscriptions: 14,
            request_timeout: Some(Duration::from_secs(9)),
            handshake_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(11),
            idle_timeout: Some(Duration::from_secs(12)),
            keep_alive: Some(Duration::from_secs(15)),
            shutdown_timeout: Duration::from_secs(13),
        };
        assert_eq!(limits(&flags.split_whitespace().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn without_flags_the_limits_are_the_defaults_of_the_library() {
        assert_eq!(limits(&[]), Limits::default());
    }

    #[test]
    fn the_limits_of_a_dialect_are_those_of_the_library_and_a_flag_wins() {
        let ethereum = Dialect::ethereum().limits();
        assert_eq!(limits(&["--dialect", "ethereum"]), ethereum);
        let flags = ["--dialect", "ethereum", "--max-batch-entries", "7"];
        assert_eq!(limits(&flags), Limits { batch_entries: 7, ..ethereum });
        assert_eq!(limits(&["--dialect", "lsp"]), Dialect::lsp().limits());
    }

    #[test]
    fn each_flag_has_an_environment_variable() {
        for arg in Flags::command().get_arguments().filter(|arg| arg.get_id() != "dialect") {
            let flag = arg.get_long().unwrap();
            let variable = format!("ANTIPHON_{}", flag.replace('-', "_").to_uppercase());
            assert_eq!(arg.get_env().unwrap().to_str(), Some(&*variable));
        }
    }

    #[test]
    fn an_invalid_value_is_named_with_a_remedy() {
        let error = Flags::try_parse_from(["test", "--max-frame-bytes", "big"]).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("`big` is not a size") && text.contains("32MiB"), "{text}");
    }
}
