//! Answers as HTTP allows them, and statuses that are none.

use super::super::codec::http::{response, whole};
use super::super::scenario::{HTTP, Precondition, Scenario, ServerAction};

const JSON: &str = "application/json";
const ERROR: &str = r#"{"code":-32603,"message":"Internal error"}"#;

pub(super) fn responses() -> Vec<Scenario> {
    [bodies(), heads()].concat()
}

fn bodies() -> Vec<Scenario> {
    vec![
        Scenario::accepts("http-chunked", "a body may come in chunks")
            .needs(Precondition::Http11)
            .over(HTTP)
            .section("RFC 9112 7.1")
            .why("Servers that write as they go send no length.")
            .acts(|received, _| vec![ServerAction::Send(chunked(&received.ordinary()))]),
        Scenario::accepts("http-until-close", "a body may end with the connection")
            .over(HTTP)
            .section("RFC 9112 6.3")
            .why("Servers of HTTP/1.0 and scripts do it.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "connection: close"];
                vec![
                    ServerAction::Send(response("200 OK", &headers, &received.ordinary())),
                    ServerAction::Close,
                ]
            }),
        Scenario::accepts("http-connection-close", "a server may close after each answer")
            .over(HTTP)
            .section("RFC 9112 9.6")
            .why("A client that uses the connection again finds nobody.")
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
        Scenario::accepts("http-header-names", "header names are the same in any case")
            .over(HTTP)
            .section("RFC 9110 5.1")
            .why("A client that looks for `Content-Length` letter by letter finds no body.")
            .acts(|received, _| {
                let body = received.ordinary();
                let length = format!("CONTENT-length:{}", body.len());
                let headers = ["coNtent-TYPE:application/json", "X-Empty:", &length];
                vec![ServerAction::Send(response("200 Fine", &headers, &body))]
            }),
        Scenario::accepts("http-interim", "100 Continue is not yet the answer")
            .needs(Precondition::Http11)
            .over(HTTP)
            .section("RFC 9110 15.2")
            .why("A client must read 1xx responses even if it did not ask for one.")
            .acts(|received, _| {
                let interim = response("100 Continue", &[], "");
                vec![ServerAction::Send(interim), ServerAction::Message(received.ordinary())]
            }),
        Scenario::accepts("http-type-json-rpc", "application/json-rpc is taken")
            .choice()
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("The proposal for JSON-RPC over HTTP names it first.")
            .acts(|received, _| {
                vec![ServerAction::Send(whole(
                    "200 OK",
                    "application/json-rpc",
                    &received.ordinary(),
                ))]
            }),
        Scenario::accepts("http-type-plain", "a Response counts though its type is text/plain")
            .choice()
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("Small servers send no better type.")
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
        Scenario::rejects("http-500-error", "status 500 with an error is no result")
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why(why)
            .acts(|received, _| {
                let body = received.respond(|call| call.with_error(ERROR));
                vec![ServerAction::Send(whole("500 Internal Server Error", JSON, &body))]
            }),
        Scenario::rejects("http-500-text", "status 500 with a page is no result")
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why(why)
            .acts(|_, _| {
                let page = "<html><body>Internal Server Error</body></html>";
                vec![ServerAction::Send(whole("500 Internal Server Error", "text/html", page))]
            }),
        Scenario::rejects("http-503-empty", "status 503 without a body is no result")
            .over(HTTP)
            .section("RFC 9110 15.6.4")
            .why("So a balancer refuses while the server restarts.")
            .acts(|_, _| {
                let headers = ["retry-after: 3600", "content-length: 0"];
                vec![ServerAction::Send(response("503 Service Unavailable", &headers, ""))]
            }),
        Scenario::rejects("http-401", "status 401 is no result")
            .over(HTTP)
            .section("RFC 9110 15.5.2")
            .why("The caller must learn that it is not let in.")
            .acts(|_, _| {
                let headers = ["www-authenticate: Bearer", "content-length: 0"];
                vec![ServerAction::Send(response("401 Unauthorized", &headers, ""))]
            }),
        Scenario::accepts("http-500-result", "a result counts though the status is 500")
            .choice()
            .over(HTTP)
            .section("RFC 9110 15.6.1")
            .why("The status is of HTTP, the answer of JSON-RPC; which one counts is open.")
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
        Scenario::rejects("http-204", "status 204 does not answer a call")
            .over(HTTP)
            .section("RFC 9110 15.3.5")
            .why("So a notification is answered; a call has a result, or an error.")
            .acts(|_, _| vec![ServerAction::Send(response("204 No Content", &[], ""))]),
        Scenario::rejects("http-page", "a page with status 200 is no result")
            .over(HTTP)
            .section("RFC 9110 8.3")
            .why("Login pages of networks and proxies come so.")
            .acts(|_, _| {
                let page = "<!doctype html><title>Welcome</title>";
                vec![ServerAction::Send(whole("200 OK", "text/html", page))]
            }),
    ]
}

fn broken() -> Vec<Scenario> {
    vec![
        Scenario::rejects("http-length-huge", "a length that is announced may never come")
            .over(HTTP)
            .section("RFC 9112 6.3")
            .why("A client that makes room for what a server announces can be ended by it.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "content-length: 999999999999999"];
                let head = response("200 OK", &headers, &received.ordinary());
                ServerAction::then_close(ServerAction::Send(head))
            }),
        Scenario::rejects("http-chunk-malformed", "a chunk without a size is no body")
            .over(HTTP)
            .section("RFC 9112 7.1")
            .why("Where the body ends cannot be known, and what follows is another answer.")
            .acts(|received, _| {
                let headers = ["content-type: application/json", "transfer-encoding: chunked"];
                let body = format!("size\r\n{}\r\n0\r\n\r\n", received.ordinary());
                ServerAction::then_close(ServerAction::Send(response("200 OK", &headers, &body)))
            }),
        Scenario::rejects("http-chunks-unended", "chunks without the last one are half a body")
            .over(HTTP)
            .section("RFC 9112 8")
            .why("The text may be whole by chance; the server did not end it.")
            .acts(|received, _| {
                let whole = chunked(&received.ordinary());
                let unended = whole[..whole.len() - b"0\r\n\r\n".len()].to_vec();
                vec![ServerAction::Send(unended), ServerAction::Close]
            }),
        Scenario::rejects("http-not-http", "what is no HTTP is no result")
            .over(HTTP)
            .section("RFC 9112 2")
            .why("Another service may listen on the port.")
            .acts(|received, _| {
                ServerAction::then_close(ServerAction::Send(received.ordinary().into_bytes()))
            }),
    ]
}

/// In three chunks, one of them with an extension.
fn chunked(body: &str) -> Vec<u8> {
    // The params of a call may hold any character, and a piece must not end within one.
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
