//! A conformance suite for JSON-RPC 2.0.
//!
//! [`server`] checks a server: it sends the transcripts of the suite and compares the replies.
//! [`client`] checks a client: it serves scenarios, most of them faulty, and looks at what the client
//! sends and how it exits. Both return one [`CaseResult`] per case, and [`CheckReport`] prints them.
//!
//! The crate never uses the `antiphon` library. A checker that shared code with a server could not see
//! a fault of that code. [`raw`] holds its own wire access: sockets, TLS, HTTP, WebSocket and framings,
//! written by hand. `antiphon` is a dependency of the tests alone.
//!
//! The `antiphon` command is the user interface. Messages and hints name its flags.
//!
//! ```no_run
//! use antiphon_check::server::{self, ServerCheck, Suite};
//! use antiphon_check::{CaseStatus, CheckError};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), CheckError> {
//! let check = ServerCheck::new("http://127.0.0.1:8650".parse()?);
//! let run = server::run(&check, &Suite::shipped()?, |_| {}).await?;
//! let failed = run.results.iter().filter(|case| case.status == CaseStatus::Failed);
//! println!("{} cases failed", failed.count());
//! # Ok(()) }
//! ```

mod baseline;
pub mod client;
mod error;
pub mod raw;
mod report;
mod result;
mod selection;
pub mod server;
mod spec_links;
mod transcript;

pub use self::baseline::{Baseline, BaselineChange, Severity};
pub use self::error::{CheckError, CheckErrorKind};
pub use self::report::{CheckReport, ReportFormat};
pub use self::result::{CaseResult, CaseStatus, DialogueLine, FailureKind};
pub use self::selection::{CaseSummary, Selection};
pub use self::transcript::{Profile, RequirementLevel};

/// An event of a run under way, for a progress display.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// A remark for the user.
    Note(&'a str),
    /// The next case begins.
    Case {
        /// Cases that are complete.
        done: usize,
        /// The group of the next case.
        group: &'a str,
    },
}

/// Checks that a text is one JSON value, by the suite's own parser.
///
/// # Errors
///
/// Describes the first fault.
pub fn validate_json(text: &str) -> Result<(), String> {
    transcript::json::Json::parse(text).map(drop)
}
