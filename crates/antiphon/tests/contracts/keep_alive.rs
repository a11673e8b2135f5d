//! Keep-alive pings detect a peer that is gone without a close.

use std::time::Duration;

use antiphon::{Client, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::scripted_http_server::{RawConnection, ScriptedServer};
use crate::support::{as_ws, within};

/// The server end of a WebSocket, and its client, which pings after a short idle time.
async fn websocket() -> (TcpStream, Client) {
    let (hand, address) = ScriptedServer::listen().await;
    let limits = Limits { keep_alive: Some(Duration::from_millis(300)), ..Limits::default() };
    let address = as_ws(&address);
    let connecting = Client::builder().limits(limits).connect(&address);
    let shaking = async {
        let mut served: RawConnection = hand.accept().await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(served.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let accept = proof(key);
        served
            .say(&format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
                 connection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
            ))
            .await;
        served.0
    };
    let (client, stream) = within(async { tokio::join!(connecting, shaking) }).await;
    (stream, client.unwrap())
}

/// The `sec-websocket-accept` value for a key (RFC 6455, section 4.2.2).
pub(crate) fn proof(key: &str) -> String {
    use base64::Engine as _;
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes());
    base64::engine::general_purpose::STANDARD.encode(sha1.digest().bytes())
}

/// Reads the next frame, which must be a masked ping without payload.
async fn ping(stream: &mut TcpStream) {
    let mut frame = [0; 6];
    within(stream.read_exact(&mut frame)).await.unwrap();
    assert_eq!(frame[..2], [0x89, 0x80]);
}

#[tokio::test]
async fn a_websocket_that_answers_pings_stays_and_one_that_does_not_ends() {
    let (mut stream, client) = websocket().await;
    for _ in 0..2 {
        ping(&mut stream).await;
        stream.write_all(&[0x8a, 0]).await.unwrap();
    }
    assert!(!client.peer().unwrap().is_closed());
    ping(&mut stream).await;
    let reason = within(client.peer().unwrap().closed()).await;
    assert!(reason.to_string().contains("no reply to a ping within 300ms"), "{reason}");
}
