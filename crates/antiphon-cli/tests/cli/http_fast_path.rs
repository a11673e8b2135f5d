//! The HTTP fast path serves a plain POST, and hyper serves other requests. Clients see no difference.

use crate::support::{Http, KEY, Server};

const HTTP: &str = "http://127.0.0.1:0";

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":{id}}}"#)
}

fn result(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":19,"id":{id}}}"#)
}

fn post(headers: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
    )
}

fn fast(id: usize) -> String {
    let body = call(id);
    post(&format!("content-length: {}\r\n", body.len()), &body)
}

fn chunked(id: usize) -> String {
    let body = call(id);
    post("transfer-encoding: chunked\r\n", &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
}

#[test]
fn both_share_a_connection_and_reply_in_order() {
    let server = Server::start(HTTP, "");
    let requests: Vec<_> = (0..40)
        .map(|id| match id {
            0..10 => fast(id),
            // From here on hyper serves the connection.
            10 => chunked(id),
            _ if id % 3 == 0 => chunked(id),
            _ => fast(id),
        })
        .collect();
    let all = requests.concat();
    for cut in [all.len(), 1, 7, 300, 4096] {
        let mut http = Http::connect(server.address("http"));
        for piece in all.as_bytes().chunks(cut) {
            http.raw(piece).unwrap();
        }
        for id in 0..40 {
            let answer = http.answer().unwrap();
            assert_eq!((answer.status, answer.body), (200, result(id)), "cut at {cut}");
        }
    }
}

#[test]
fn both_send_equal_responses() {
    let server = Server::start(HTTP, "--max-frame-bytes 1000");
    for body in [call(1), "{".to_owned(), "[]".to_owned(), call(1).replace(",\"id\":1", "")] {
        let length = format!("content-length: {}\r\n", body.len());
        let answers = ["", "accept: */*\r\n", "te: trailers\r\n"].map(|more| {
            let mut http = Http::connect(server.address("http"));
            http.raw(post(&format!("{length}{more}"), &body).as_bytes()).unwrap();
            let answer = http.answer().unwrap();
            let mut names: Vec<_> = answer.headers.iter().map(|(name, _)| name.clone()).collect();
            names.sort_unstable();
            (answer.status, names, answer.body)
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
    }
    let mut http = Http::connect(server.address("http"));
    http.raw(post("content-length: 1001\r\n", &"x".repeat(1001)).as_bytes()).unwrap();
    assert_eq!(http.answer().unwrap().status, 413);
}

/// Two parsers must not disagree on the end of a request (request smuggling).
#[test]
fn an_ambiguous_request_is_rejected_and_closes_the_connection() {
    let server = Server::start(HTTP, "");
    let smuggled = fast(2);
    for headers in [
        "content-length: 0\r\ncontent-length: 61\r\n",
        "content-length: +61\r\n",
        "content-length: 0x3d\r\n",
        "content-length: 61, 61\r\n",
        "content-length: -1\r\n",
        "content-length : 61\r\n",
        "content-length: 61\r\ntransfer-encoding: identity\r\n",
        "content-length: 99999999999999999999\r\n",
        "host: other\r\ncontent-length: 61\r\n x: folded\r\n",
    ] {
        let mut http = Http::connect(server.address("http"));
        http.raw(format!("{}{smuggled}", post(headers, &call(1))).as_bytes()).unwrap();
        let answer = http.answer().unwrap();
        assert!([400, 403, 413, 501].contains(&answer.status), "{headers:?}: {answer:?}");
        assert!(http.answer().is_err(), "{headers:?}: the connection goes on");
    }
}

/// The first frame may arrive in one packet with the upgrade request.
#[test]
fn a_connection_can_upgrade_after_fast_path_requests() {
    let server = Server::start(HTTP, "");
    let mut http = Http::connect(server.address("http"));
    let upgrade = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
    );
    let text = call(3);
    let mut bytes = [fast(1), fast(2), upgrade].concat().into_bytes();
    bytes.extend([0x81, 0x80 | text.len() as u8, 0, 0, 0, 0]);
    bytes.extend(text.as_bytes());
    http.raw(&bytes).unwrap();
    assert_eq!(http.answer().unwrap().body, result(1));
    assert_eq!(http.answer().unwrap().body, result(2));
    assert_eq!(http.answer().unwrap().status, 101);
    let mut frame = vec![0; 2 + result(3).len()];
    http.read_exact(&mut frame).unwrap();
    assert_eq!(String::from_utf8_lossy(&frame[2..]), result(3));
}
