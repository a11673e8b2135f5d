//! Conversions to an endpoint, so that a function that takes one accepts text and values.

use std::convert::Infallible;

use super::{Endpoint, EndpointError};

impl TryFrom<&str> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: &str) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl TryFrom<&String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: &String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl From<&Endpoint> for Endpoint {
    fn from(endpoint: &Endpoint) -> Self {
        endpoint.clone()
    }
}

/// The conversion of an [`Endpoint`] to itself cannot fail.
impl From<Infallible> for EndpointError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
