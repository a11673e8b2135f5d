//! hyper with a constant reply: the cost of HTTP alone, and so the upper bound for servers on top of it.
//!
//! Nothing is parsed or checked: the id is found by its name and copied, and the params of an echo
//! are sent without a copy.

mod parts;

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use parts::Parts;
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!(r#"{{"http":"http://{}"}}"#, listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service_fn(reply));
    drop(connection.await);
}

async fn reply(request: Request<Incoming>) -> Result<Response<Parts>, Infallible> {
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut response = Response::new(answer(&body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

const ID: &[u8] = br#""id":"#;
const PARAMS: &[u8] = br#""params":"#;
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","result":"#;
const HELLO: &[u8] = br#"{"jsonrpc":"2.0","result":"hello","id":"#;

fn answer(body: &Bytes) -> Parts {
    if body.first() == Some(&b'[') {
        return Parts::one(batch(body));
    }
    // Searches from the end, since the params may be long and contain ids of their own.
    let id = memmem::rfind(body, ID).unwrap_or(0);
    let digits = digits(&body[id + ID.len()..]);
    match params(&body[..id]) {
        Some(at) => {
            let tail = [br#","id":"#, digits, b"}"].concat();
            Parts::three([Bytes::from_static(HEAD), body.slice(at..id - 1), tail.into()])
        }
        None => Parts::one([HELLO, digits, b"}"].concat()),
    }
}

fn batch(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64);
    out.push(b'[');
    for id in memmem::find_iter(body, ID) {
        out.extend_from_slice(HELLO);
        out.extend_from_slice(digits(&body[id + ID.len()..]));
        out.extend_from_slice(b"},");
    }
    out.pop();
    out.push(b']');
    out
}

/// The start of the params if the method is `echo`; they end at `,"id":`.
fn params(head: &[u8]) -> Option<usize> {
    let head = &head[..head.len().min(64)];
    memmem::find(head, br#""echo""#)?;
    Some(memmem::find(head, PARAMS)? + PARAMS.len())
}

fn digits(id: &[u8]) -> &[u8] {
    let end = id.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(id.len());
    &id[..end]
}
