//! The call that ends a subscription at the peer.
//!
//! It passes the layers that the subscribe call has passed, because a layer may rename methods. If no layer
//! passes it on, it is sent without the layers: otherwise the peer would send items for as long as the
//! connection is open.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Waker};

use antiphon_core::{Params, RawJson};

use super::followed_subscription::{Attached, FollowedSubscription, SubscriptionSource};
use crate::BoxFuture;
use crate::catch_unwind::CatchUnwind;
use crate::error::{CallError, ErrorChain};
use crate::invocation::Invocation;

type Reply = Result<RawJson, CallError>;

/// The layers of a client. They do not keep its connection open.
pub(crate) trait UnsubscribeLayers: Send + Sync {
    /// Passes an unsubscribe call through the layers, and then to `rest`.
    fn pass(&self, call: Invocation, rest: UnsubscribeRest) -> BoxFuture<'static, Reply>;
}

/// The layers of a subscription, the outermost first. A client in a client with layers has several.
pub(super) type PassedLayers = Vec<Arc<dyn UnsubscribeLayers>>;

/// The rest of the way of an unsubscribe call, inside a layer.
#[derive(Clone)]
pub(crate) struct UnsubscribeRest {
    unsubscription: Arc<Unsubscription>,
    /// The number of layers that the call has passed.
    passed: usize,
}

impl UnsubscribeRest {
    /// Passes the call through the next layers, or sends it.
    pub(crate) async fn run(mut self, call: Invocation) -> Reply {
        let Some(layers) = self.unsubscription.layers.get(self.passed).cloned() else {
            return self.unsubscription.send(call).await;
        };
        self.passed += 1;
        layers.pass(call, self).await
    }
}

/// One unsubscribe call.
struct Unsubscription {
    source: Arc<dyn SubscriptionSource>,
    /// The call before it has passed the layers.
    call: Invocation,
    layers: PassedLayers,
    /// The response is waited for.
    waits: bool,
    is_sent: AtomicBool,
}

impl Unsubscription {
    async fn send(&self, call: Invocation) -> Reply {
        self.is_sent.store(true, Ordering::Relaxed);
        if self.waits {
            return self.source.send(call).await;
        }
        self.source.send_and_forget(&call);
        Ok(RawJson::NULL)
    }
}

/// No layer has passed the call on, or its future was dropped before.
impl Drop for Unsubscription {
    fn drop(&mut self) {
        if !*self.is_sent.get_mut() {
            self.source.send_and_forget(&self.call);
        }
    }
}

impl Attached {
    /// Ends the subscription on both sides, without waiting for the response.
    pub(crate) fn leave(&self, feed: &FollowedSubscription) {
        self.source.unfollow(&self.id, feed);
        let layers = feed.layers();
        if layers.is_empty() {
            return self.source.send_and_forget(&self.unsubscribe_call(feed));
        }
        let unsubscribing = self.unsubscribe(feed, layers, false);
        let mut unsubscribing = CatchUnwind::new(Box::pin(async move {
            if let Err(error) = unsubscribing.await {
                tracing::debug!(error = %ErrorChain(&error), "a layer rejected an unsubscribe call");
            }
        }));
        // Most layers do not wait. Then the call is sent before this returns, as it is without layers.
        if unsubscribing.poll(&mut Poller::from_waker(Waker::noop())).is_pending() {
            let task = poll_fn(move |poller| unsubscribing.poll(poller).map(drop));
            self.source.clone().spawn(Box::pin(task));
        }
    }

    /// Ends the subscription on both sides, and waits for the response.
    pub(crate) async fn leave_and_wait(
        &self,
        feed: &FollowedSubscription,
    ) -> Result<(), CallError> {
        self.source.unfollow(&self.id, feed);
        self.unsubscribe(feed, feed.layers(), true).await.map(drop)
    }

    fn unsubscribe(
        &self,
        feed: &FollowedSubscription,
        layers: PassedLayers,
        waits: bool,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let (source, call) = (self.source.clone(), self.unsubscribe_call(feed));
        let sent = call.clone();
        let is_sent = AtomicBool::new(false);
        let unsubscription = Arc::new(Unsubscription { source, call, layers, waits, is_sent });
        UnsubscribeRest { unsubscription, passed: 0 }.run(sent)
    }

    fn unsubscribe_call(&self, feed: &FollowedSubscription) -> Invocation {
        let params = Params::parse(&format!("[{}]", self.id)).ok();
        Invocation::new(&feed.topic.unsubscribe, params)
    }
}
