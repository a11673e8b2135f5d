//! How one payload becomes its answer: dispatch, batches, order, panics, deadlines.
//!
//! The engine never reads or writes a socket. Whoever has a payload starts it with [`Dispatcher::start`]
//! and gets the answer at once, or a [`Run`] to poll.

mod dispatcher;
mod drive;
mod in_flight;
pub(crate) mod notification_order;
mod ordered_replies;
mod pending_calls;
mod reply_buffer;
mod requests;
mod responder;
mod run;
mod run_control;
mod settings;

pub(crate) use dispatcher::{Dispatcher, Started};
pub(crate) use drive::Drive;
pub(crate) use in_flight::InFlight;
pub(crate) use reply_buffer::{ReplyBuffer, ReplyTail};
pub use responder::Responder;
pub(crate) use run::{Run, RunState, short_id};
pub(crate) use run_control::{EndRun, RunControl};
pub(crate) use settings::{OnConnect, OnConnectPanicked, Settings};
