//! Turns one payload into its reply: dispatch, batches, order, panics, deadlines.
//!
//! The engine never reads or writes a socket. A transport starts a payload with [`Dispatcher::start`],
//! which returns the reply at once or a [`Run`] to poll.

mod dispatcher;
mod drive;
mod in_flight;
pub(crate) mod notification_guard;
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
pub(crate) use reply_buffer::ReplyBuffer;
#[cfg(feature = "http")]
pub(crate) use reply_buffer::ReplyTail;
pub use responder::Responder;
pub(crate) use run::{Run, RunState, short_id};
pub(crate) use run_control::{EndRun, RunControl};
pub(crate) use settings::{OnConnect, Settings};
