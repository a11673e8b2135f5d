//! An HTTP server whose responses are scripted by the test.

use std::future::IntoFuture;

use antiphon::{CallError, Client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;

use crate::support::within;

/// A server that sends the bytes that the test passes.
pub(crate) struct ScriptedServer(pub(crate) TcpListener);

/// A connection of the scripted server.
pub(crate) struct RawConnection(pub(crate) TcpStream);

impl ScriptedServer {
    pub(crate) async fn listen() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        (Self(listener), address)
    }

    pub(crate) async fn accept(&self) -> RawConnection {
        let (stream, _) = within(self.0.accept()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        RawConnection(stream)
    }

    /// Serves this response to every request, on connections that stay open. Returns the number of
    /// connections after this many calls.
    pub(crate) async fn serve(self, response: String, calls: usize) -> usize {
        let (done, mut all) = tokio::sync::mpsc::channel(calls);
        let mut connections = 0;
        let mut served = 0;
        while served < calls {
            tokio::select! {
                stream = self.0.accept() => {
                    connections += 1;
                    let (mut stream, response, done) =
                        (RawConnection(stream.unwrap().0), response.clone(), done.clone());
                    tokio::spawn(async move {
                        while let Some((_, body)) = stream.request().await {
                            stream.say(&answered(&response, &body)).await;
                            done.send(()).await.unwrap();
                        }
                    });
                }
                _ = all.recv() => served += 1,
            }
        }
        connections
    }
}

impl RawConnection {
    /// Reads the next request: its head and its body.
    pub(crate) async fn request(&mut self) -> Option<(String, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(self.0.read_u8()).await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        within(self.0.read_exact(&mut body)).await.unwrap();
        Some((head, String::from_utf8(body).unwrap()))
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads the next request and sends this response.
    pub(crate) async fn answer(&mut self, response: &str) {
        let (_, body) = self.request().await.expect("there is a request");
        self.say(&answered(response, &body)).await;
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn ended(&mut self) {
        assert_eq!(within(self.0.read(&mut [0])).await.unwrap_or(0), 0);
    }
}

/// Fills in a response template: `{json}` is the result 1 with the id of the request, `{size}` its
/// length, `{left}` and `{right}` its two pieces, and `{hex}` the length of `{right}`.
pub(crate) fn answered(response: &str, request: &str) -> String {
    let request: serde_json::Value = serde_json::from_str(request).unwrap();
    let json = format!(r#"{{"jsonrpc":"2.0","result":1,"id":{}}}"#, request["id"]);
    let (left, right) = json.split_at(10);
    response
        .replace("{size}", &json.len().to_string())
        .replace("{hex}", &format!("{:X}", json.len() - 10))
        .replace("{left}", left)
        .replace("{right}", right)
        .replace("{json}", &json)
}

pub(crate) const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{json}";
pub(crate) const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       a;ext=\"1\"\r\n{left}\r\n{hex}\r\n{right}\r\n0\r\nX-Sum: 1\r\n\r\n";

pub(crate) async fn one(client: &Client) -> Result<u64, CallError> {
    within(client.call::<u64>("m", ()).into_future()).await
}

/// Lets the runtime process the bytes that have arrived.
pub(crate) async fn let_runtime_run() {
    for _ in 0..10 {
        yield_now().await;
    }
}
