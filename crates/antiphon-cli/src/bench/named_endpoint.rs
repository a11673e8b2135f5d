//! An endpoint with an optional name: `NAME=ENDPOINT`.

use antiphon::Endpoint;

use crate::endpoint;

/// An endpoint with an optional name for the results.
#[derive(Clone, Debug)]
pub(crate) struct NamedEndpoint {
    pub(crate) name: Option<String>,
    pub(crate) endpoint: Endpoint,
}

/// Parses `NAME=ENDPOINT`. An `=` after the scheme belongs to the endpoint.
pub(crate) fn named_endpoint(text: &str) -> Result<NamedEndpoint, String> {
    let (name, endpoint) = match text.split_once('=') {
        Some((name, endpoint)) if !name.contains(':') => (Some(name.to_owned()), endpoint),
        _ => (None, text),
    };
    if name.as_deref() == Some("") {
        return Err("a name is missing before the `=`".to_owned());
    }
    Ok(NamedEndpoint { name, endpoint: endpoint::callable(endpoint)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_scheme() {
        for (text, name, endpoint) in [
            ("a=http://h:1", Some("a"), "http://h:1"),
            ("http://h:1/?a=b", None, "http://h:1/?a=b"),
            ("exec:server --a=b", None, "exec:server '--a=b'"),
            ("my server=exec:server --a=b", Some("my server"), "exec:server '--a=b'"),
        ] {
            let named = named_endpoint(text).unwrap();
            assert_eq!((named.name.as_deref(), &*named.endpoint.to_string()), (name, endpoint));
        }
        for bad in ["=http://h:1", "a=", "a=stdio:", "memory:x"] {
            assert!(named_endpoint(bad).is_err(), "{bad}");
        }
    }
}
