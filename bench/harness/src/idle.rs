//! The memory that an idle WebSocket connection uses in its server.
//!
//! Each connection makes one call, so that buffers were used, and is then idle. The figure is the
//! private memory of the process; the kernel's memory for a socket is equal for all servers.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::options::Options;
use crate::place::Place;
use crate::server::Server;

const PEERS: [&str; 5] = ["jsonrpsee", "antiphon", "ajj", "axum", "plain"];
const CALL: &[u8] = br#"{"jsonrpc":"2.0","method":"say_hello","id":1}"#;

#[derive(Serialize, Deserialize)]
pub(crate) struct Idle {
    pub(crate) connections: usize,
    /// Bytes per connection, by server.
    pub(crate) bytes: BTreeMap<String, f64>,
}

pub(crate) fn measure(place: &Place, options: &Options) -> Result<Idle, Fault> {
    let connections = if options.quick { 500 } else { 10_000.min(file_limit()? - 300) };
    let mut bytes = BTreeMap::new();
    for peer in PEERS {
        let server = Server::start(place, peer)?;
        bytes.insert(peer.to_owned(), one(&server, connections)?);
    }
    Ok(Idle { connections, bytes })
}

fn one(server: &Server, connections: usize) -> Result<f64, Fault> {
    let endpoint = server.endpoint("ws")?;
    // One-time setup of a server does not belong to a connection.
    let first = open(endpoint)?;
    let before = private(server.process())?;
    let open = (0..connections).map(|_| open(endpoint)).collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(Duration::from_secs(2));
    let after = private(server.process())?;
    drop((first, open));
    Ok(after.saturating_sub(before) as f64 / connections as f64)
}

/// Does the handshake and makes one call.
fn open(endpoint: &str) -> io::Result<TcpStream> {
    let address = endpoint.trim_start_matches("ws://");
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let handshake = format!(
        "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(handshake.as_bytes())?;
    skip_head(&mut stream)?;
    hello(&mut stream)?;
    Ok(stream)
}

fn skip_head(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    Ok(())
}

fn hello(stream: &mut TcpStream) -> io::Result<()> {
    // A mask of zeros leaves the payload unchanged.
    let mut frame = vec![0x81, 0x80 | CALL.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(CALL);
    stream.write_all(&frame)?;
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut reply = vec![0; (head[1] & 0x7f).into()];
    stream.read_exact(&mut reply)?;
    let is_right = String::from_utf8_lossy(&reply).contains(r#""result":"hello""#);
    if is_right { Ok(()) } else { Err(io::Error::other("a wrong reply")) }
}

/// The private bytes of this process.
fn private(process: u32) -> Result<u64, Fault> {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let kilobytes = rollup.lines().filter(|line| line.starts_with("Private_")).map(|line| {
        line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    });
    Ok(kilobytes.sum::<u64>() * 1024)
}

/// The limit of open files of this process, and so of a server.
fn file_limit() -> Result<usize, Fault> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files")).ok_or("no limit")?;
    Ok(line.split_whitespace().nth(3).ok_or("no limit")?.parse().unwrap_or(usize::MAX))
}
