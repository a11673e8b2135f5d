//! Subscriptions: one peer subscribes, the other sends items until either ends the subscription.
//!
//! On the wire, a subscription is a method that returns its id, notifications that each carry the id
//! and an item, and a method that ends it. A [`Topic`] names the three. The serving side uses a
//! [`Sink`] or a `Stream` (see [`Router::subscription`](crate::Router::subscription)); the subscribing
//! side gets a [`Subscription`](crate::Subscription), which is a `Stream`.
//!
//! Invariants: the id is sent before the first item; every buffer is bounded and counts what it drops;
//! a served subscription never outlives its connection.

mod followed_subscription;
mod item_message;
mod item_queue;
mod served_subscription;
mod sink;
mod topic;
mod unsubscription;

pub use followed_subscription::Follower;
pub(crate) use followed_subscription::{
    Attached, Ended, FollowedEvent, FollowedSubscription, Notice, SubscriptionSource,
};
pub(crate) use item_message::{Closing, ItemParams, SHUTTING_DOWN};
pub(crate) use served_subscription::{ItemWriter, ServedSubscription};
pub use sink::{Sink, SinkClosed};
pub(crate) use topic::split_kind;
pub use topic::{Overflow, Topic};
pub(crate) use unsubscription::{UnsubscribeLayers, UnsubscribeRest};
