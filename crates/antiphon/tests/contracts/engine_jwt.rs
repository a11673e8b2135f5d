//! The tokens of the Engine API, over HTTP and WebSocket.

use std::future::IntoFuture as _;
use std::time::{Duration, SystemTime};

use antiphon::layer::JwtSecret;
use antiphon::transport::http::EnginePolicy;
use antiphon::{CallError, Client, Context, Dialect, Reconnect, Router, Server};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{JSON, exchange, post};
use crate::keep_alive::proof;
use crate::support::{as_ws, request, within};

fn secret() -> JwtSecret {
    JwtSecret::from_hex(&"5f".repeat(32)).unwrap()
}

/// Serves an Engine API. Returns its address.
async fn engine() -> String {
    let router = Router::new().method("eth_chainId", |(): (), _cx: Context| async { Ok("0x539") });
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::ethereum());
    let address = server.endpoint().to_string();
    let policy = EnginePolicy::new(secret());
    tokio::spawn(
        server.page("/metrics", "text/plain", String::new).http_policy(policy).serve(router),
    );
    address
}

#[tokio::test]
async fn a_client_with_the_secret_calls_over_every_wire() {
    let address = engine().await;
    let http = Client::builder().jwt(secret()).connect(&address).await.unwrap();
    let http2 = Client::builder().http2().jwt(secret()).connect(&address).await.unwrap();
    let ws = Client::builder().jwt(secret()).connect(as_ws(&address)).await.unwrap();
    for client in [http, http2, ws] {
        assert_eq!(client.call::<String>("eth_chainId", ()).await.unwrap(), "0x539");
    }
}

#[tokio::test]
async fn a_stranger_gets_401_before_the_body_is_read() {
    let address = engine().await;
    let other = JwtSecret::from_hex(&"60".repeat(32)).unwrap();
    let (now, minute) = (SystemTime::now(), Duration::from_secs(75));
    let bearer = |token: String| format!("authorization: Bearer {token}\r\n");
    let fresh = bearer(secret().token(now));
    let none = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE3MDAwMDAwMDB9.".to_owned();
    for (headers, reason) in [
        (String::new(), "missing"),
        ("authorization: Basic YTpi\r\n".to_owned(), "missing"),
        (fresh.repeat(2), "several"),
        (bearer(other.token(now)), "same secret file"),
        (bearer(secret().token(now - minute)), "too old"),
        (bearer(secret().token(now + minute)), "future"),
        (bearer(none), "HS256"),
    ] {
        let call = request(1, "eth_chainId", "[]");
        // The client sends the body only if the server asks for it, and it does not.
        let headers = format!("{JSON}expect: 100-continue\r\n{headers}");
        let unfinished = post("/", &headers, &call).replace(&call, "");
        let response = exchange(&address, &unfinished).await;
        assert!(response.starts_with("HTTP/1.1 401 "), "{reason}: {response}");
        assert!(response.contains("www-authenticate: Bearer\r\n"), "{response}");
        let body = response.split_once("\r\n\r\n").unwrap().1;
        assert!(body.contains(reason), "{reason}: {body}");
    }
    let health = "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n";
    assert!(exchange(&address, health).await.starts_with("HTTP/1.1 401 "));
    let page = health.replace("GET /", "GET /metrics");
    assert!(exchange(&address, &page).await.starts_with("HTTP/1.1 200 "));

    let client = Client::connect(&address).await.unwrap();
    let error = client.call::<String>("eth_chainId", ()).await.unwrap_err();
    assert_eq!(error.http_status().map(|status| status.as_u16()), Some(401), "{error}");
    let refused = Client::connect(as_ws(&address)).await.unwrap_err();
    assert!(antiphon::ErrorChain(&refused).to_string().contains("401"), "{refused:?}");
}

/// Reads the head of a request. Returns its token, and the key of a WebSocket.
async fn head(stream: &mut BufReader<TcpStream>) -> (String, Option<String>) {
    let (mut token, mut key) = (None, None);
    loop {
        let mut line = String::new();
        within(stream.read_line(&mut line)).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            match line.trim_end() {
                "" => return (token.unwrap(), key),
                _ => continue,
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => token = Some(value.strip_prefix("Bearer ").unwrap().to_owned()),
            "sec-websocket-key" => key = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// The tokens of one second are equal, so a test of new tokens waits for the next one.
async fn next_second() {
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    while second() == now {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn each_request_has_a_new_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::builder().jwt(secret()).connect(&address).await.unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let serving = async {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            tokens.push(head(&mut stream).await.0);
            let refusal = "HTTP/1.1 503 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(refusal.as_bytes()).await.unwrap();
        };
        let (called, ()) =
            tokio::join!(client.call::<String>("eth_chainId", ()).into_future(), within(serving));
        assert!(matches!(called, Err(CallError::HttpStatus(_))), "{called:?}");
        next_second().await;
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test]
async fn each_websocket_has_a_new_token_after_a_reconnect_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    let pause = Duration::from_millis(1);
    let builder = Client::builder().jwt(secret()).reconnect(Reconnect::new().pause(pause, pause));
    let connecting = tokio::spawn(async move { builder.connect(&address).await });
    let mut tokens = Vec::new();
    // The first connection ends after the handshake, the second one stays.
    let mut stream = shake_hands(&listener, &mut tokens).await;
    let client = within(connecting).await.unwrap().unwrap();
    next_second().await;
    drop(stream);
    stream = shake_hands(&listener, &mut tokens).await;
    assert_ne!(tokens[0], tokens[1]);
    drop((client, stream));
}

/// Accepts a WebSocket, and records its token.
async fn shake_hands(listener: &TcpListener, tokens: &mut Vec<String>) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(within(listener.accept()).await.unwrap().0);
    let (token, key) = head(&mut stream).await;
    tokens.push(token);
    let accept = proof(&key.unwrap());
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(response.as_bytes()).await.unwrap();
    stream
}
