//! Work-done progress on the client: the type of a report.

use serde::{Deserialize, Serialize};

use crate::types::{WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport};

/// A report of work-done progress, as [`Call::with_progress`](antiphon::Call::with_progress) reads it.
///
/// ```
/// use antiphon::CallError;
/// use antiphon_lsp::types::ReferenceParams;
/// use antiphon_lsp::{RemoteServer, WorkDoneReport};
/// use futures_util::StreamExt as _;
///
/// async fn references(server: &RemoteServer, params: ReferenceParams) -> Result<(), CallError> {
///     let (call, mut progress) = server.references(params).with_progress::<WorkDoneReport>();
///     let reports = async {
///         while let Some(Ok(report)) = progress.next().await {
///             if let WorkDoneReport::Report(report) = report {
///                 println!("{:?} {:?}", report.message, report.percentage);
///             }
///         }
///     };
///     let (found, ()) = tokio::join!(call, reports);
///     println!("{:?}", found?);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum WorkDoneReport {
    /// The first report.
    Begin(WorkDoneProgressBegin),
    /// An intermediate report.
    Report(WorkDoneProgressReport),
    /// The last report.
    End(WorkDoneProgressEnd),
}
