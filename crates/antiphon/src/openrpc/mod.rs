//! The description of a service: an OpenRPC 1.4 document.
//!
//! Contract traits describe themselves: names, doc comments, params, results and errors, with a schema
//! for every type that implements `schemars::JsonSchema`. A type without a schema is described as any
//! value, so the trait is not required. [`Router::describe`](crate::Router::describe) describes closures.
//!
//! ```
//! use antiphon::{CallError, openrpc::Info};
//!
//! #[antiphon::rpc]
//! pub trait Math {
//!     /// Subtracts one number from another.
//!     async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, CallError>;
//! }
//!
//! struct Calculator;
//!
//! impl Math for Calculator {
//!     async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, CallError> {
//!         Ok(minuend - subtrahend)
//!     }
//! }
//!
//! let router = Calculator.into_router();
//! let document = router.openrpc(Info::new("Math", "1.0.0"));
//! assert_eq!(document.methods[0].summary.as_deref(), Some("Subtracts one number from another."));
//! # let path = std::env::temp_dir().join(format!("antiphon-openrpc-doc-{}.json", std::process::id()));
//! document.write_to(&path)?;
//! # std::fs::remove_file(&path)?;
//!
//! let router = router.discoverable(Info::new("Math", "1.0.0"));       // serves `rpc.discover`
//! # drop(router);
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(feature = "validate")]
pub(crate) mod check;
#[cfg(feature = "validate")]
mod check_call;
mod description;
mod document;
mod expand_params;
mod method_or_topic;
mod references;
mod subscription_methods;

#[cfg(feature = "validate")]
pub use check::SchemaError;
#[cfg(feature = "validate")]
pub use check_call::InvalidCallError;
pub use description::Description;
#[doc(hidden)]
pub use description::Generator;
pub use document::{
    Components, Content, Document, DocumentError, Failure, Info, Method, ParamStructure,
};
pub use method_or_topic::MethodOrTopic;

pub(crate) use description::{Described, MethodAndSchema};
#[cfg(feature = "macros")]
pub(crate) use description::{expand_all_params, items, split_docs};
pub(crate) use subscription_methods::merge_methods;

/// The version of the specification that our documents follow.
pub const VERSION: &str = "1.4.1";
