//! `ServerSession` and the language servers of other projects.
//!
//! Each test goes from `initialize` to `exit`, and requires what the server asks its editor on the way.

mod clangd;
mod editor;
mod pylsp;
mod typescript;
