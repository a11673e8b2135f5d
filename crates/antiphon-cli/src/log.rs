//! What is logged: on stderr always, since stdout belongs to results and to the protocol.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// What to log on stderr: off, error, warn, info, debug, trace, or target=level, with commas
    /// [default: warn for serve, else error]
    #[arg(long, global = true, env = "ANTIPHON_LOG", value_name = "LEVEL", value_parser = filter)]
    log: Option<String>,
    /// How to log it
    #[arg(long, global = true, env = "ANTIPHON_LOG_FORMAT", value_name = "FORMAT")]
    #[arg(value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// The target of the spans of calls.
const CALLS: &str = "antiphon::layer::trace";

/// Starts logging, at this level where none is named, and a line for each call where they are traced. A
/// panic is logged too: its text must not break a log of JSON lines.
pub(crate) fn init(args: &LogArgs, default: &str, is_traced: bool) {
    let level = args.log.as_deref().unwrap_or(default);
    let (filter, spans) = match is_traced {
        true => (format!("{level},{CALLS}=info"), FmtSpan::CLOSE),
        false => (level.to_owned(), FmtSpan::NONE),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_span_events(spans)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // A stderr that nobody reads is no reason to panic.
        .log_internal_errors(false);
    match args.log_format {
        Format::Text => log.init(),
        Format::Json => log.json().init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("{}", panic.to_string().replace('\n', " "));
    }));
}

/// The filter would take any word for a target; a misspelled level must not pass for one.
fn filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let remedy = "use off, error, warn, info, debug or trace, or target=level as in antiphon=trace";
    let known = |part: &str| part.contains('=') || LEVELS.contains(&&*part.to_lowercase());
    if !text.split(',').all(|part| known(part.trim())) {
        return Err(remedy.to_owned());
    }
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| format!("{error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn levels_and_targets_are_taken_and_other_words_are_not() {
        for good in ["warn", "DEBUG", "antiphon=trace,warn", "off"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "warn,", "antiphon=loud"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
