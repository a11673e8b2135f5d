//! The reasons of an error and its causes as one text.

use std::error::Error;
use std::fmt;

/// Displays an error with all its causes, separated by `: `.
///
/// The `Display` of an error of these crates does not repeat its [`source`](Error::source), so each reason
/// appears once. Use it for logs and messages to users.
///
/// ```
/// use antiphon_core::{ErrorChain, ParamsError};
///
/// let error = ParamsError::from(serde_json::from_str::<u8>("x").unwrap_err());
/// assert_eq!(error.to_string(), "params do not serialize");
/// assert!(ErrorChain(&error).to_string().starts_with("params do not serialize: "));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
