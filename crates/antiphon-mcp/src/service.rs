//! A type that is a server: its methods are the tools, resources and prompts.
//!
//! The attribute `#[antiphon_mcp::server]` implements the trait.

use std::sync::Arc;

use crate::{McpServer, ServerBuilder};

/// A type whose methods are the tools, resources and prompts of a server.
///
#[cfg_attr(
    feature = "macros",
    doc = "[`#[antiphon_mcp::server]`](macro@crate::server) implements it."
)]
#[cfg_attr(
    not(feature = "macros"),
    doc = "`#[antiphon_mcp::server]` implements it, with the feature `macros`."
)]
/// The handlers share the value. Keep a clone of the `Arc` to use the value while it is served.
///
#[cfg_attr(feature = "macros", doc = "```")]
#[cfg_attr(not(feature = "macros"), doc = "```ignore")]
/// use std::sync::Arc;
/// use antiphon_mcp::McpService;
///
/// struct Greeter;
///
/// #[antiphon_mcp::server(name = "greeter", version = "1.0")]
/// impl Greeter {
///     /// Greets somebody.
///     #[tool]
///     fn greet(&self, name: String) -> String {
///         format!("hello {name}")
///     }
/// }
///
/// struct Clock;
///
/// #[antiphon_mcp::server(name = "clock", version = "1.0")]
/// impl Clock {
///     /// The seconds since 1970.
///     #[tool(read_only)]
///     fn seconds(&self) -> Result<u64, std::time::SystemTimeError> {
///         Ok(std::time::SystemTime::UNIX_EPOCH.elapsed()?.as_secs())
///     }
/// }
///
/// // One server with the tools of both.
/// let builder = Arc::new(Greeter).builder().page_size(100);
/// let server = Arc::new(Clock).add_to(builder).build();
/// ```
pub trait McpService: Send + Sync + Sized + 'static {
    /// Returns a builder of a server that offers everything that the service offers. More can be added to it.
    fn builder(self: Arc<Self>) -> ServerBuilder;

    /// Adds everything that the service offers to a builder, so that several services can be one server.
    fn add_to(self: Arc<Self>, builder: ServerBuilder) -> ServerBuilder;

    /// Builds the server.
    ///
    /// # Panics
    /// Panics if the system has no random numbers; see [`ServerBuilder::build`].
    fn into_server(self) -> McpServer {
        Arc::new(self).builder().build()
    }
}
