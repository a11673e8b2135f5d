//! Clients that mean harm: what they can make the server keep or wait for is bounded, and other clients are served.

mod calls;
mod garbage;
mod sessions;
mod unread;
