//! Valid and invalid HTTP responses.

use super::super::codec::http::{response, whole};
use super::super::scenario::{HTTP, Precondition, Scenario, ServerAction};

const JSON: &str = "application/json";
const ERROR: &str = r#"{"code":-32603,"message":"Internal error"}"#;

pub(super) fn responses() -> Vec<Scenario> {
    [bodies(), heads()].concat()
}

fn bodies() -> Vec<Scenario> {
    vec![
        Scenario::accepts("http-chunked", "a body may be chunked")
            .needs(Precondition::Http11)
            .over(HTTP)
            .section("RFC 9112 7.1")
            .why("Servers that stream a body do not know its length.")
            .acts(|received, _| vec![ServerAction::Send(chunked(&received.ordinary()))]),
        Scenario::accepts("http-until-close", "a body may end with the connection")
            .over(HTTP)
            .section("RFC 9112 6.3")
            .why("HTTP/1.0 servers and scripts do this.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "connection: close"];
                vec![
                    ServerAction::Send(response("200 OK", &headers, &received.ordinary())),
                    ServerAction::Close,
                ]
            }),
        Scenario::accepts(
            "http-connection-close",
            "a server may close the connection after each response",
        )
        .over(HTTP)
        .section("RFC 9112 9.6")
        .why("A client that reuses the connection fails.")
        .acts(|received, _| {
            let body = received.ordinary();
            let length = format!("content-length: {}", body.len());
            let headers = ["content-type: application/json", "connection: close", &length];
            vec![ServerAction::Send(response("200 OK", &headers, &body)), ServerAction::Close]
        }),
    ]
}

fn heads() -> Vec<Scenario> {
    vec![
        Scenario::accepts("http-charset", "a content type may have parameters")
            .over(HTTP)
            .section("RFC 9110 8.3.1")
            .why("`application/json; charset=utf-8` is what many frameworks send.")
            .acts(|received, _| {
                vec![ServerAction::Send(whole(
                    "200 OK",
                    "application/json; charset=utf-8",
                    &received.ordinary(),
                ))]
            }),
        Scenario::accepts("http-header-names", "header names are case-insensitive")
            .over(HTTP)
            .section("RFC 9110 5.1")
            .why("A client that looks for the exact spelling `Content-Length` finds no body.")
            .acts(|received, _| {
                let body = received.ordinary();
                let length = format!("CONTENT-length:{}", body.len());
                let headers = ["coNtent-TYPE:application/json", "X-Empty:", &length];
                vec![ServerAction::Send(response("200 Fine", &headers, &body))]
            }),
        Scenario::accepts("http-interim", "100 Continue is not the final response")
            .needs(Precondition::Http11)
            .over(HTTP)
            .section("RFC 9110 15.2")
            .why("A client must accept 1xx responses even if it did not request one.")
            .acts(|received, _| {
                let interim = response("100 Continue", &[], "");
                vec![ServerAction::Send(interim), ServerAction::Message(received.ordinary())]
            }),
        Scenario::accepts("http-type-json-rpc", "application/json-rpc is accepted")
            .choice()
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("The draft for JSON-RPC over HTTP lists it first.")
            .acts(|received, _| {
                vec![ServerAction::Send(whole(
                    "200 OK",
                    "application/json-rpc",
                    &received.ordinary(),
                ))]
            }),
        Scenario::accepts("http-type-plain", "a Response counts although its type is text/plain")
            .choice()
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("Simple servers send this type.")
            .acts(|received, _| {
                vec![ServerAction::Send(whole("200 OK", "text/plain", &received.ordinary()))]
            }),
    ]
}

pub(super) fn endings() -> Vec<Scenario> {
    [refusals(), nothing(), broken()].concat()
}

fn refusals() -> Vec<Scenario> {
    let why = "Servers map errors to statuses; the caller must learn that the call failed.";
    vec![
        Scenario::rejects("http-500-error", "status 500 with an error is not a result")
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why(why)
            .acts(|received, _| {
                let body = received.respond(|call| call.with_error(ERROR));
                vec![ServerAction::Send(whole("500 Internal Server Error", JSON, &body))]
            }),
        Scenario::rejects("http-500-text", "status 500 with an HTML page is not a result")
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why(why)
            .acts(|_, _| {
                let page = "<html><body>Internal Server Error</body></html>";
                vec![ServerAction::Send(whole("500 Internal Server Error", "text/html", page))]
            }),
        Scenario::rejects("http-503-empty", "status 503 without a body is not a result")
            .over(HTTP)
            .section("RFC 9110 15.6.4")
            .why("Load balancers send it while the server restarts.")
            .acts(|_, _| {
                let headers = ["retry-after: 3600", "content-length: 0"];
                vec![ServerAction::Send(response("503 Service Unavailable", &headers, ""))]
            }),
        Scenario::rejects("http-401", "status 401 is not a result")
            .over(HTTP)
            .section("RFC 9110 15.5.2")
            .why("The caller must learn that it has no access.")
            .acts(|_, _| {
                let headers = ["www-authenticate: Bearer", "content-length: 0"];
                vec![ServerAction::Send(response("401 Unauthorized", &headers, ""))]
            }),
        Scenario::accepts("http-500-result", "a result counts although the status is 500")
            .choice()
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why("HTTP reports a failure, and JSON-RPC reports a result. No specification defines which one counts.")
            .acts(|received, _| {
                vec![ServerAction::Send(whole(
                    "500 Internal Server Error",
                    JSON,
                    &received.ordinary(),
                ))]
            }),
    ]
}

fn nothing() -> Vec<Scenario> {
    vec![
        Scenario::rejects("http-204", "status 204 is not the response to a call")
            .over(HTTP)
            .section("RFC 9110 15.3.5")
            .why("204 is the response to a notification. A call has a result or an error.")
            .acts(|_, _| vec![ServerAction::Send(response("204 No Content", &[], ""))]),
        Scenario::rejects("http-page", "an HTML page with status 200 is not a result")
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("Networks and proxies send login pages this way.")
            .acts(|_, _| {
                let page = "<!doctype html><title>Welcome</title>";
                vec![ServerAction::Send(whole("200 OK", "text/html", page))]
            }),
    ]
}

fn broken() -> Vec<Scenario> {
    vec![
        Scenario::rejects("http-length-huge", "the announced bytes may never arrive")
            .over(HTTP)
            .section("RFC 9112 6.3")
            .why("A client that allocates the announced length can be crashed by a server.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "content-length: 999999999999999"];
                let head = response("200 OK", &headers, &received.ordinary());
                ServerAction::then_close(ServerAction::Send(head))
            }),
        Scenario::rejects("http-chunk-malformed", "a chunk without a size is invalid")
            .over(HTTP)
            .section("RFC 9112 7.1")
            .why("The end of the body is unknown, so the next response would be misread.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "transfer-encoding: chunked"];
                let body = format!("size\r\n{}\r\n0\r\n\r\n", received.ordinary());
                ServerAction::then_close(ServerAction::Send(response("200 OK", &headers, &body)))
            }),
        Scenario::rejects(
            "http-chunks-unended",
            "a chunked body without its last chunk is incomplete",
        )
        .over(HTTP)
        .section("RFC 9112 8")
        .why("The JSON may look complete, but the server did not finish the body.")
        .acts(|received, _| {
            let whole = chunked(&received.ordinary());
            let unended = whole[..whole.len() - b"0\r\n\r\n".len()].to_vec();
            vec![ServerAction::Send(unended), ServerAction::Close]
        }),
        Scenario::rejects("http-not-http", "a text that is not HTTP is not a result")
            .over(HTTP)
            .section("RFC 9112 2")
            .why("Another service may listen on the port.")
            .acts(|received, _| {
                ServerAction::then_close(ServerAction::Send(received.ordinary().into_bytes()))
            }),
    ]
}

/// Returns a response in three chunks, one of them with an extension.
fn chunked(body: &str) -> Vec<u8> {
    // The params of a call may hold any character, and a chunk must not end inside one.
    let middle = (1..=body.len() / 2).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(1);
    let headers = ["content-type: application/json", "transfer-encoding: chunked"];
    let mut out = response("200 OK", &headers, "");
    for (extension, piece) in [("", &body[..1]), (";a=b", &body[1..middle]), ("", &body[middle..])]
    {
        out.extend_from_slice(format!("{:x}{extension}\r\n{piece}\r\n", piece.len()).as_bytes());
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
