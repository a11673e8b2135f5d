//! Rules that a transcript cannot express: HTTP statuses, content types, Host and Origin, WebSocket
//! frames, and the error codes of limits.

use crate::support::{Connection, Frame, Framing, Http, KEY, Server, Stream, Ws};

const HTTP: &str = "http://127.0.0.1:0";
const CALL: &str = r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","result":19,"id":1}"#;
const JSON: &str = "content-type: application/json\r\n";

fn http(server: &Server) -> Http {
    Http::connect(server.address("http"))
}

#[track_caller]
fn has_code(answer: &str, code: i32) {
    assert!(answer.contains(&format!("\"error\":{{\"code\":{code},")), "not {code}: {answer:.300}");
}

#[test]
fn a_response_is_a_200_and_no_response_is_a_204() {
    let server = Server::start(HTTP, "");
    let mut http = http(&server);
    for message in [CALL, "", "{", "[]", "1", r#"{"jsonrpc":"2.0","method":"panic","id":1}"#] {
        let answer = http.post(message.as_bytes());
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    }
    for message in
        [r#"{"jsonrpc":"2.0","method":"update"}"#, r#"{"jsonrpc":"2.0","result":1,"id":1}"#]
    {
        let answer = http.post(message.as_bytes());
        assert_eq!((answer.status, &*answer.body), (204, ""));
    }
}

#[test]
fn only_post_is_served() {
    let server = Server::start(HTTP, "");
    for verb in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let answer = http(&server).request(verb, "", b"");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{verb}");
    }
}

#[test]
fn the_content_type_is_json() {
    let server = Server::start(HTTP, "");
    let mut http = http(&server);
    for kind in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json;x=\"y\"",
        "application/json-rpc",
        "application/jsonrequest",
    ] {
        let answer = http.request("POST", &format!("content-type: {kind}\r\n"), CALL.as_bytes());
        assert_eq!((answer.status, &*answer.body), (200, RESULT), "{kind}");
    }
    // The content types of HTML forms are rejected, since forms bypass CORS.
    for headers in [
        "",
        "content-type: text/plain\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
        "content-type: multipart/form-data; boundary=x\r\n",
        "content-type: text/plain; application/json\r\n",
        "content-type: application/jsonp\r\n",
    ] {
        let mut http = Http::connect(server.address("http"));
        assert_eq!(http.request("POST", headers, CALL.as_bytes()).status, 415, "{headers}");
    }
}

#[test]
fn a_body_over_the_limit_is_a_413_with_an_error() {
    let server = Server::start(HTTP, "--max-frame-bytes 1k");
    let answer = http(&server).post(&[b'['; 2048]);
    assert_eq!((answer.status, answer.header("content-type")), (413, Some("application/json")));
    has_code(&answer.body, -32007);
    http(&server).works();
}

/// A client that sends `Expect: 100-continue` gets the error instead of a 100 (RFC 9110, section
/// 10.1.1).
#[test]
fn a_body_over_the_limit_gets_no_100_continue() {
    let server = Server::start(HTTP, "--max-frame-bytes 1k");
    let mut http = http(&server);
    http.head("POST", &format!("{JSON}expect: 100-continue\r\n"), 1 << 20).unwrap();
    assert_eq!(http.answer().unwrap().status, 413);
}

#[test]
fn invalid_http_is_a_400() {
    let server = Server::start(HTTP, "");
    let mut http = http(&server);
    http.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"id\":1}\r\n\r\n").unwrap();
    assert_eq!(http.answer().unwrap().status, 400);
}

/// A client may send its next request slowly, or only after this response.
#[test]
fn a_response_does_not_wait_for_the_rest_of_the_next_request() {
    let server = Server::start(HTTP, "");
    let mut http = http(&server);
    http.head("POST", JSON, CALL.len()).unwrap();
    http.raw(format!("{CALL}POST / HTT").as_bytes()).unwrap();
    assert_eq!(http.answer().unwrap().body, RESULT);
}

#[test]
fn on_loopback_a_foreign_host_is_a_403() {
    let server = Server::start(HTTP, "");
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", ""]
    {
        let answer = http(&server).request("POST", &format!("host: {host}\r\n{JSON}"), b"1");
        assert_eq!(answer.status, 403, "{host}");
    }
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.2:9", "[::1]:80"] {
        let answer = http(&server).request("POST", &format!("host: {host}\r\n{JSON}"), b"1");
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[test]
fn an_allowed_host_is_served() {
    let server = Server::start(HTTP, "--allow-host rpc.example");
    let status =
        |host| http(&server).request("POST", &format!("host: {host}\r\n{JSON}"), b"1").status;
    assert_eq!([status("rpc.example"), status("rpc.example:80")], [200, 200]);
    assert_eq!([status("other.example"), status("localhost")], [403, 200]);
}

#[test]
fn a_foreign_origin_is_a_403_without_cors_headers() {
    let server = Server::start(HTTP, "");
    for origin in ["http://evil.example", "null", "https://localhost.evil.example"] {
        let answer = http(&server).request("POST", &format!("origin: {origin}\r\n{JSON}"), b"1");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
        let preflight = format!("origin: {origin}\r\naccess-control-request-method: POST\r\n");
        let answer = http(&server).request("OPTIONS", &preflight, b"");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
    }
    let same = format!("origin: http://{}\r\n{JSON}", server.address("http"));
    assert_eq!(http(&server).request("POST", &same, b"1").status, 200);
}

#[test]
fn an_allowed_origin_is_served_with_cors_headers() {
    let server = Server::start(HTTP, "--allow-origin https://app.example");
    let page = format!("origin: https://app.example\r\n{JSON}");
    let answer = http(&server).request("POST", &page, CALL.as_bytes());
    assert_eq!((answer.status, &*answer.body), (200, RESULT));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));

    let answer = http(&server).request("OPTIONS", "origin: https://app.example\r\n", b"");
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, Some("POST")));
    let other = format!("origin: https://other.example\r\n{JSON}");
    assert_eq!(http(&server).request("POST", &other, b"1").status, 403);
}

/// CORS does not apply to an upgrade, so the server itself must reject a foreign origin.
#[test]
fn an_upgrade_checks_origin_host_version_and_key() {
    let server = Server::start(HTTP, "");
    let good = format!(
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: {KEY}\r\n"
    );
    let status = |headers: &str| http(&server).request("GET", headers, b"").status;
    assert_eq!(status(&good), 101);
    assert_eq!(status(&format!("{good}origin: http://evil.example\r\n")), 403);
    assert_eq!(status(&format!("host: evil.example\r\n{good}")), 403);
    assert_eq!(status(&good.replace("version: 13", "version: 8")), 426);
    assert_eq!(status(&good.replace(KEY, "short")), 400);
}

#[test]
fn a_websocket_endpoint_rejects_http_calls() {
    let server = Server::start("ws://127.0.0.1:0", "");
    let mut http = Http::connect(server.address("ws"));
    assert_eq!(http.post(CALL.as_bytes()).status, 426);
}

#[test]
fn only_the_configured_path_is_served() {
    let server = Server::start("http://127.0.0.1:0/rpc", "");
    let address = server.address("http").strip_suffix("/rpc").unwrap();
    assert_eq!(Http::connect(address).post(CALL.as_bytes()).status, 404);
}

#[test]
fn websocket_accepts_text_binary_and_fragments() {
    let server = Server::start(HTTP, "");
    let mut ws = Ws::connect(server.address("http"));
    let answer = || Frame::Text(RESULT.as_bytes().to_vec());
    ws.raw(&Ws::framed(0x81, CALL.as_bytes())).unwrap();
    assert_eq!(ws.frame().unwrap(), answer());
    ws.raw(&Ws::framed(0x82, CALL.as_bytes())).unwrap();
    assert_eq!(ws.frame().unwrap(), answer());

    let (one, two) = CALL.as_bytes().split_at(20);
    let ping = Ws::framed(0x89, b"between");
    ws.raw(&[Ws::framed(0x01, one), ping, Ws::framed(0x80, two)].concat()).unwrap();
    let came = [ws.frame().unwrap(), ws.frame().unwrap()];
    assert!(came.contains(&answer()) && came.contains(&Frame::Other(0x8A)), "{came:?}");
}

#[test]
fn a_websocket_protocol_error_gets_a_close_code() {
    let server = Server::start(HTTP, "--max-frame-bytes 1k");
    let not_masked = [0x81, 2, b'[', b']'].to_vec();
    for (frame, code) in [
        (Ws::framed(0x81, b"\"\xC3\x28\""), 1007),
        (Ws::framed(0x81, &[b'['; 2048]), 1009),
        (Ws::framed(0x83, b"reserved"), 1002),
        (not_masked, 1002),
        (Ws::framed(0x88, &1000_u16.to_be_bytes()), 1000),
    ] {
        let mut ws = Ws::connect(server.address("http"));
        ws.raw(&frame).unwrap();
        assert_eq!(ws.frame().unwrap(), Frame::Close(code));
        assert!(ws.frame().is_err(), "the connection goes on after {code}");
    }
    Ws::connect(server.address("http")).works();
}

/// The codes are those of jsonrpsee. Each is tested over HTTP and over a stream.
#[test]
fn each_limit_has_an_error_code() {
    let flags = "--max-frame-bytes 2k --max-response-bytes 300 --max-batch-entries 3 \
                 --request-timeout 100ms --max-depth 8";
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", flags);
    let sleep = r#"{"jsonrpc":"2.0","method":"sleep","params":[60000],"id":1}"#;
    let echo = format!(r#"{{"jsonrpc":"2.0","method":"echo","params":["{:x<400}"],"id":1}}"#, "");
    let mut http = http(&server);
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let connections: [&mut dyn Connection; 2] = [&mut http, &mut stream];
    for connection in connections {
        has_code(&connection.ask(&echo), -32008);
        has_code(&connection.ask("[1,1,1,1]"), -32010);
        has_code(&connection.ask(sleep), -32012);
        has_code(&connection.ask("[[[[[[[[[]]]]]]]]]"), -32700);
        connection.works();
    }
    has_code(&stream.ask(&"[".repeat(4096)), -32007);
    stream.works();
}

#[test]
fn null_params_are_accepted_with_the_flag() {
    let call = r#"{"jsonrpc":"2.0","method":"echo","params":null,"id":1}"#;
    let strict = Server::start("tcp://127.0.0.1:0", "");
    has_code(&Stream::tcp(strict.address("tcp"), Framing::Line).ask(call), -32600);
    let lenient = Server::start("tcp://127.0.0.1:0", "--null-params");
    let answer = Stream::tcp(lenient.address("tcp"), Framing::Line).ask(call);
    assert_eq!(answer, r#"{"jsonrpc":"2.0","result":null,"id":1}"#);
}
