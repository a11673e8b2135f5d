//! A call of a tool as a call of a method.
//!
//! The call of the service is a part of the handler: a client that cancels its call drops the handler, and so cancels
//! the call of the service.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{Call, CallError, Client, RawJson};
use futures_util::StreamExt as _;

use super::arguments::MethodParams;
use super::output::{self, Output};
use super::progress::ProgressRelay;
use crate::types::CallToolResult;
use crate::{RequestContext, ToolError, ToolOutput};

/// Calls one method.
#[derive(Clone)]
pub(super) struct MethodCaller(pub(super) Arc<MethodTarget>);

/// A method and how it is called.
pub(super) struct MethodTarget {
    pub(super) client: Client,
    pub(super) method: String,
    pub(super) params: MethodParams,
    pub(super) output: Option<Output>,
    pub(super) timeout: Option<Duration>,
    pub(super) is_notification: bool,
}

impl MethodCaller {
    pub(super) async fn run(
        self,
        arguments: RawJson,
        cx: RequestContext,
    ) -> Result<ToolOutput, ToolError> {
        let target = &*self.0;
        let params = target.params.encode(&arguments)?;
        if target.is_notification {
            let sent = target.client.notify(&target.method, &params).await;
            sent.map_err(|error| output::failure(&error))?;
            return Ok(CallToolResult::text("the notification was sent").into());
        }
        let outcome = match cx.wants_progress() {
            true => target.call_with_progress(&params, cx).await,
            false => target.call(&params).await,
        };
        output::of_call(outcome, target.output.as_ref())
    }
}

impl MethodTarget {
    fn call(&self, params: &Option<RawJson>) -> Call<RawJson> {
        let call = self.client.call(&self.method, params);
        match self.timeout {
            Some(timeout) => call.timeout(timeout),
            None => call,
        }
    }

    /// Calls, and passes on the progress. A transport or a dialect without progress refuses that before it sends
    /// anything, so the call is made without it.
    async fn call_with_progress(
        &self,
        params: &Option<RawJson>,
        cx: RequestContext,
    ) -> Result<RawJson, CallError> {
        let (call, mut reports) = self.call(params).with_progress::<RawJson>();
        let mut call = pin!(call.into_future());
        let mut relay = ProgressRelay::new(cx);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(report) = reports.next() => {
                    if let Ok(report) = report {
                        relay.report(&report).await;
                    }
                }
                outcome = &mut call => break outcome,
            }
        };
        match outcome {
            Err(CallError::Unsupported(_) | CallError::CannotCallBack(_)) => {
                self.call(params).await
            }
            outcome => outcome,
        }
    }
}
