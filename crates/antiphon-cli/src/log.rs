//! Logging. It always goes to stderr, since stdout carries results or the protocol.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The logging flags, which every command accepts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// Log on stderr at this level: off, error, warn, info, debug, trace, or a list such as
    /// warn,antiphon=debug [default: warn for serve, mcp serve and mcp bridge, error for
    /// other commands]
    #[arg(long, global = true, env = "ANTIPHON_LOG", value_name = "LEVEL", value_parser = filter)]
    log: Option<String>,
    /// Log in this format
    #[arg(long, global = true, env = "ANTIPHON_LOG_FORMAT", value_name = "FORMAT")]
    #[arg(value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// One line of text per event
    Text,
    /// One JSON object per line
    Json,
}

/// The `tracing` target of the call spans.
const CALLS: &str = "antiphon::layer::trace";

/// Starts logging. `default` is the level without `--log`; `is_traced` logs a line per call. Panics are
/// logged too, so that their text does not corrupt a log of JSON lines.
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
        // Without this, a closed stderr would cause a panic.
        .log_internal_errors(false);
    match args.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("{}", panic.to_string().replace('\n', " "));
    }));
}

/// Parses a log filter. `EnvFilter` reads an unknown word as a target, so a misspelled level is
/// rejected here.
fn filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let remedy = "use off, error, warn, info, debug, trace, or target=level such as antiphon=trace";
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
    fn levels_and_targets_are_accepted_and_other_words_are_rejected() {
        for good in ["warn", "DEBUG", "antiphon=trace,warn", "off"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "warn,", "antiphon=loud"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
