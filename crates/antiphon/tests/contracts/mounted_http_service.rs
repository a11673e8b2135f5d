//! The HTTP service mounted in another server: bodies and responses of `tower`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::transport::http::{Guard, HttpBody, HttpPolicy, HttpRefusal, HttpService};
use antiphon::{Connection, Context, Limits, Router};
use bytes::Bytes;
use http::header::CONNECTION;
use http::request::Builder;
use http::{Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tower_service::Service as _;

use crate::support::{request, within};

/// A body of these pieces, with this size hint. It may report its end together with the last piece.
#[derive(Default)]
struct Pieces {
    pieces: Vec<&'static [u8]>,
    promised: u64,
    tells_end: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pieces.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.pieces.remove(0))))))
    }

    fn is_end_stream(&self) -> bool {
        self.tells_end && self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.promised);
        hint
    }
}

fn post() -> Builder {
    Request::post("/").header("content-type", "application/json")
}

/// The size hint is a lower bound, and an empty piece is not the end.
#[tokio::test]
async fn a_body_is_read_to_its_end() {
    let call: &[u8] = br#"{"jsonrpc":"2.0","method":"m","id":1}   "#;
    let (one, two) = call.split_at(9);
    for (pieces, promised) in [
        (vec![call], 0),
        (vec![b"", call], 0),
        (vec![one, two], 0),
        (vec![one, two], 9),
        (vec![one, b"", two], 0),
        (vec![one, two, b""], 40),
    ] {
        for tells_end in [false, true] {
            let router = Router::new().method("m", |(): (), _cx: Context| async { Ok(1) });
            let mut service = HttpService::new(router);
            let body = Pieces { pieces: pieces.clone(), promised, tells_end };
            let answer = within(service.call(post().body(body).unwrap())).await.unwrap();
            let body = answer.into_body().collect().await.unwrap();
            assert_eq!(body.to_bytes(), r#"{"jsonrpc":"2.0","result":1,"id":1}"#);
        }
    }
}

/// Contract 7, for every size hint and every end of a body.
#[tokio::test]
async fn a_body_over_the_limit_is_rejected_in_any_form() {
    for pieces in [vec![&b"123456"[..]], vec![b"123", b"456"]] {
        for (promised, tells_end) in [(0, false), (0, true), (6, false), (6, true)] {
            let limits = Limits { frame_bytes: 5, ..Limits::default() };
            let mut service = HttpService::with_limits(Router::new(), limits);
            let body = Pieces { pieces: pieces.clone(), promised, tells_end };
            let answer = within(service.call(post().body(body).unwrap())).await.unwrap();
            assert_eq!(answer.status(), 413, "{pieces:?}, {promised}, {tells_end}");
        }
    }
}

/// A page of an allowed origin can read the error response.
#[tokio::test]
async fn a_page_of_an_allowed_origin_can_read_every_response() {
    for (request, status) in [
        (Request::post("/").header("content-type", "text/plain"), 415),
        (Request::get("/"), 405),
        (post().header("expect", "100-continue"), 413),
        (post(), 413),
    ] {
        let limits = Limits { frame_bytes: 5, ..Limits::default() };
        let guard = Guard::new().allow_origin("http://page.example");
        let mut service = HttpService::with_limits(Router::new(), limits).guard(guard);
        let body = Pieces { pieces: vec![b"123456789"], promised: 9, ..Pieces::default() };
        let request = request.header("origin", "http://page.example").body(body).unwrap();
        let answer = within(service.call(request)).await.unwrap();
        assert_eq!(answer.status(), status);
        let origin = answer.headers().get("access-control-allow-origin");
        assert_eq!(origin.unwrap(), "http://page.example");
    }
}

/// Another status than that of the default response.
struct OwnStatus;

impl HttpPolicy for OwnStatus {
    fn refuse(&self, _: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let mut response = refusal.into_response();
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    }
}

/// The client would send its next requests by the same connection. HTTP/2 forbids the header.
#[tokio::test]
async fn a_response_during_a_shutdown_closes_a_connection_of_http_1() {
    let service = || HttpService::new(Router::new());
    for (mut service, status) in [(service(), 503), (service().policy(OwnStatus), 418)] {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let request = post().version(version).body(Pieces::default()).unwrap();
            let answer = within(service.call(request)).await.unwrap();
            assert!(answer.status() == 200 && !answer.headers().contains_key(CONNECTION));
        }
        within(service.clone().shutdown()).await;
        for (version, header) in
            [(Version::HTTP_10, true), (Version::HTTP_11, true), (Version::HTTP_2, false)]
        {
            let request = post().version(version).body(Pieces::default()).unwrap();
            let answer = within(service.call(request)).await.unwrap();
            assert_eq!(answer.status(), status);
            let closes = answer.headers().get(CONNECTION).map(|value| value == "close");
            assert_eq!(closes, header.then_some(true), "{version:?}");
        }
    }
}

/// A Response is never answered, and neither is an invalid one, however the batch ends.
#[tokio::test]
async fn an_invalid_response_is_not_answered_at_the_timeout() {
    let limits = Limits {
        in_flight: 1,
        request_timeout: Some(Duration::from_millis(20)),
        ..Limits::default()
    };
    let router = Router::new().method("wait", |(): (), _cx: Context| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let mut service = HttpService::with_limits(router, limits);
    let no_response = r#"{"jsonrpc":"2.0","result":1,"error":2,"id":5}"#;
    let calls = [request(1, "wait", "[]"), request(2, "wait", "[]")].join(",");
    let batch = format!("[{calls},{no_response}]");
    let answer = within(service.call(post().body(http_body_util::Full::from(batch)).unwrap()));
    let body = answer.await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    assert_eq!(answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [1, 2]);
}
