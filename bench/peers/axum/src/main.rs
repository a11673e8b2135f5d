//! JSON-RPC written by hand on axum: POST on `/`, WebSocket on `/ws`.
//!
//! Raised limit: axum rejects bodies over 2 MB by default, and some workloads are larger.

use std::error::Error;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::serve::ListenerExt;
use futures_util::future::{OptionFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use hand::{Payload, Request};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new()
        .route("/", post(by_post))
        .route("/ws", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(by_websocket) }))
        .layer(DefaultBodyLimit::max(32 << 20));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!(r#"{{"http":"http://{address}","ws":"ws://{address}/ws"}}"#);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, app).await?)
}

async fn by_post(body: Bytes) -> Response {
    match answer(&body).await {
        Some(reply) => ([(header::CONTENT_TYPE, "application/json")], reply).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Calls run concurrently in the connection's own task; a reply is sent when it is ready.
async fn by_websocket(mut socket: WebSocket) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(reply) = running.next(), if !running.is_empty() => {
                let Some(reply) = reply else { continue };
                if socket.send(reply).await.is_err() {
                    return;
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => running.push(by_text(text.into())),
                Some(Ok(Message::Binary(bytes))) => running.push(by_text(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            }
        }
    }
}

async fn by_text(text: Bytes) -> Option<Message> {
    let reply = answer(&text).await?;
    Some(Message::Text(String::from_utf8(reply).expect("JSON is UTF-8").into()))
}

async fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let written = match hand::parse(message) {
        Ok(Payload::One(request)) => serde_json::to_vec(&serve(&request).await?),
        Ok(Payload::Batch(batch)) => {
            let replies = join_all(batch.iter().map(serve)).await;
            let replies: Vec<_> = replies.into_iter().flatten().collect();
            if replies.is_empty() {
                return None;
            }
            serde_json::to_vec(&replies)
        }
        Err(_) => serde_json::to_vec(&hand::parse_error()),
    };
    Some(written.expect("memory takes what is written"))
}

async fn serve<'a>(request: &Request<'a>) -> Option<hand::Response<'a>> {
    let reply = request.serve()?;
    OptionFuture::from(reply.pause.map(tokio::time::sleep)).await;
    Some(reply)
}
