//! The errors of a document whose methods cannot be offered.

use crate::InvalidTool;

/// The reason why the methods of a document cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FromOpenRpcError {
    /// The document describes no method.
    #[error("the document `{service}` describes no method")]
    Empty {
        /// The title of the service.
        service: String,
    },
    /// The patterns leave no method.
    #[error(
        "none of the {methods} methods of the document is offered: the first is `{first}`; change what is allowed and \
         denied"
    )]
    NothingAllowed {
        /// The number of methods in the document.
        methods: usize,
        /// The name of the first one.
        first: String,
    },
    /// A method is given a name that a tool cannot have.
    #[error(
        "`{name}` cannot be the name of a tool: use a name that is not taken, with 1 to 128 of the characters A-Z a-z \
         0-9 _ - ."
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A method is given another name, but the document does not describe it.
    #[error(
        "the document describes no method `{method}`, so its tool cannot have another name; check the spelling"
    )]
    UnknownMethod {
        /// The method.
        method: String,
    },
    /// A schema of a method is not valid.
    #[error(
        "the schema of {place} of the method `{method}` is not valid: {reason}; correct it, or deny the method"
    )]
    Schema {
        /// The method.
        method: String,
        /// The place: a param or the result.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A tool cannot be offered.
    #[error("the method `{method}` cannot be offered; correct its description, or deny the method")]
    Tool {
        /// The method.
        method: String,
        /// The reason.
        source: InvalidTool,
    },
    /// The schemas of all tools are too large.
    #[error("the schemas of the tools have more than {limit} values; allow fewer methods")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}
