//! The address grammar.

use antiphon::Endpoint;

/// Every text is rejected with a reason, or is an endpoint that parses to itself from its `Display`.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Endpoint>() {
        Ok(endpoint) => {
            let written = endpoint.to_string();
            let back = written.parse::<Endpoint>();
            assert_eq!(back.as_ref(), Ok(&endpoint), "{text:?} is written {written:?}");
            assert_eq!(back.map(|back| back.to_string()), Ok(written));
            assert_path_is_sent(&endpoint);
        }
        Err(error) => assert!(error.to_string().contains(text), "{error} does not name {text:?}"),
    }
}

/// A path that is changed when it is sent would be requested under another name than it is served.
fn assert_path_is_sent(endpoint: &Endpoint) {
    if let Endpoint::Http { path, .. } | Endpoint::Ws { path, .. } = endpoint {
        let sent = path.parse::<http::uri::PathAndQuery>().map(|path| path.to_string());
        assert_eq!(sent.ok().as_ref(), Some(path));
    }
}

/// The message itself, which is not an endpoint: useful inputs are in the corpus.
pub fn seed(message: &[u8]) -> Vec<u8> {
    message.to_vec()
}
