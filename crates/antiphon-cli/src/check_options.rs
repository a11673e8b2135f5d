//! The options that `check` and `check-client` share: which cases to run, and how to report.

use std::path::PathBuf;
use std::time::Duration;

use antiphon_check::{
    Baseline, BaselineChange, CaseResult, CaseStatus, CaseSummary, CheckError, CheckErrorKind,
    CheckReport, DialogueLine, ReportFormat, Selection,
};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{CommandError, Exit};
use crate::output;

/// The flags that choose cases.
#[derive(Clone, Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Run only these cases: a group, a name, a prefix such as id-*, or a level [repeatable]
    #[arg(long, value_name = "PATTERN", help_heading = "Cases")]
    only: Vec<String>,
    /// Skip these cases: patterns as for --only [repeatable]
    #[arg(long, value_name = "PATTERN", help_heading = "Cases")]
    skip: Vec<String>,
    /// List the cases and exit
    #[arg(long, help_heading = "Cases")]
    pub(crate) list: bool,
}

impl SelectionArgs {
    pub(crate) fn selection(&self) -> Selection {
        Selection { only: self.only.clone(), skip: self.skip.clone() }
    }
}

/// Prints one case per line.
pub(crate) fn list<'a>(cases: impl Iterator<Item = CaseSummary<'a>>) -> Result<Exit, CommandError> {
    for CaseSummary { group, name, level, title } in cases {
        output::line(&format!("{:<40} {level:<6} {title}", format!("{group}/{name}")))?;
    }
    Ok(Exit::Success)
}

/// The flags of the report.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// Print the report in this format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, help_heading = "Report")]
    format: ReportFormat,
    /// Read known findings from this file, and fail only if a case is worse
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    baseline: Option<PathBuf>,
    /// Write the findings of this run to the --baseline file
    #[arg(long, requires = "baseline", help_heading = "Report")]
    update_baseline: bool,
    /// List every case, not only findings
    #[arg(short, long, help_heading = "Report")]
    pub(crate) verbose: bool,
}

impl ReportArgs {
    /// Reads the baseline; an empty one, if the file is to be written for the first time.
    pub(crate) fn baseline(&self) -> Result<Option<Baseline>, CommandError> {
        match &self.baseline {
            Some(path) if self.update_baseline && !path.exists() => Ok(Some(Baseline::default())),
            Some(path) => Ok(Some(Baseline::read(path)?)),
            None => Ok(None),
        }
    }

    /// Prints the report, and returns the exit code.
    pub(crate) fn report(
        &self,
        baseline: Option<&Baseline>,
        facts: Vec<(&'static str, String)>,
        took: Duration,
        results: Vec<CaseResult>,
    ) -> Result<Exit, CommandError> {
        let changes = baseline.map(|baseline| baseline.compare(&results));
        let (seconds, is_verbose) = (took.as_secs_f64(), self.verbose);
        let report = CheckReport { facts, seconds, results, changes, is_verbose };
        output::line(&report.render(self.format, output::is_coloured()))?;
        if let (Some(path), Some(baseline), true) = (&self.baseline, baseline, self.update_baseline)
        {
            baseline.write(path, &report.results)?;
            return Ok(Exit::Success);
        }
        let is_worse = match &report.changes {
            Some(changes) => changes.iter().any(BaselineChange::is_worse),
            None => report.count(CaseStatus::Failed) > 0,
        };
        Ok(if is_worse { Exit::PeerError } else { Exit::Success })
    }
}

/// Waits for a signal that ends the process.
pub(crate) async fn interrupted() {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = received(SignalKind::interrupt()) => {}
        () = received(SignalKind::terminate()) => {}
        () = received(SignalKind::hangup()) => {}
    }
}

/// Prints the messages that explain an error.
pub(crate) fn explain(error: &CheckError) {
    for line in error.dialogue() {
        let (mark, text) = match line {
            DialogueLine::Sent(text) => ("-->", text),
            DialogueLine::Received(text) => ("<--", text),
        };
        output::note(&format!("{} {}", output::dim(mark), output::visible(text)));
    }
}

impl From<CheckError> for CommandError {
    fn from(error: CheckError) -> Self {
        let exit = match error.kind() {
            CheckErrorKind::Usage => Exit::Usage,
            CheckErrorKind::TimedOut => Exit::Timeout,
            CheckErrorKind::Protocol => Exit::Protocol,
            _ => Exit::Transport,
        };
        let failure = Self::new(exit, error.to_string());
        match error.remedy() {
            Some(remedy) => failure.hint(remedy),
            None => failure,
        }
    }
}
