//! A call that goes on answering: one side subscribes, the other sends items until either has enough.
//!
//! On the wire it is a method that answers with the id of the subscription, notifications that carry
//! that id and an item each, and a method that ends it; a [`Topic`] names the three. The side that
//! serves has a [`Sink`] or just a `Stream` (see [`Router::subscription`](crate::Router::subscription)),
//! the side that subscribes a [`Subscription`], which is a `Stream`.
//!
//! Invariants: the id is on its way before the first item is; a buffer holds what it may and no more,
//! and says what it lost; nothing of a subscription outlives its connection.

mod channel;
mod feed;
mod items;
mod ring;
mod sink;
mod topic;

pub(crate) use channel::{Channel, ItemWriter};
pub use feed::Follower;
pub(crate) use feed::{Attached, Ended, Feed, FeedSource, Next, Notice};
pub(crate) use items::{Arrived, Closing, SHUTTING_DOWN};
pub use sink::{Sink, SinkClosed};
pub(crate) use topic::split_kind;
pub use topic::{Overflow, Topic};
