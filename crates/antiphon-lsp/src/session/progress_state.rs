//! The state of one progress operation, combined from all its reports.

use crate::WorkDoneReport;

/// The state of work that the server does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgressState {
    /// The title of the work, such as `Indexing`.
    pub title: String,
    /// The current step. After the end, this is the last message.
    pub message: Option<String>,
    /// The percentage from 0 to 100, if the server sends it.
    pub percentage: Option<u32>,
    /// Whether the user may cancel the work.
    pub cancellable: bool,
    /// Whether the work has ended.
    pub ended: bool,
}

impl ProgressState {
    /// Applies a report. Members that it does not contain are unchanged.
    pub(super) fn apply(&mut self, report: WorkDoneReport) {
        let (message, percentage, cancellable) = match report {
            WorkDoneReport::Begin(begin) => {
                self.title = begin.title;
                (begin.message, begin.percentage, begin.cancellable)
            }
            WorkDoneReport::Report(report) => {
                (report.message, report.percentage, report.cancellable)
            }
            WorkDoneReport::End(end) => {
                self.ended = true;
                (end.message, None, Some(false))
            }
        };
        self.message = message.or(self.message.take());
        self.percentage = percentage.or(self.percentage);
        self.cancellable = cancellable.unwrap_or(self.cancellable);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_report_keeps_what_it_does_not_name() {
        let mut state = ProgressState::default();
        let mut apply = |report: Value| {
            state.apply(serde_json::from_value(report).unwrap());
            (state.message.clone(), state.percentage, state.cancellable, state.ended)
        };
        let text = |text: &str| Some(text.to_owned());
        let begin = json!({"kind": "begin", "title": "t", "message": "a", "cancellable": true});
        assert_eq!(apply(begin), (text("a"), None, true, false));
        let report = json!({"kind": "report", "percentage": 5});
        assert_eq!(apply(report), (text("a"), Some(5), true, false));
        let report = json!({"kind": "report", "message": "b", "cancellable": false});
        assert_eq!(apply(report), (text("b"), Some(5), false, false));
        assert_eq!(apply(json!({"kind": "end"})), (text("b"), Some(5), false, true));
        assert_eq!(state.title, "t");
    }
}
