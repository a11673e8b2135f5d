//! The reference server on its own port, until it is dropped or a message kills it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::fault::Fault;
use super::reference::{End, Reference};
use super::{http, ws};

/// The size limit of a message.
pub(crate) const MAX_MESSAGE: u64 = 16 << 20;

/// The wire of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Lines,
    Http,
    Ws,
}

/// A listening server.
pub(crate) struct MutantServer {
    address: SocketAddr,
    wire: Wire,
    is_over: Arc<AtomicBool>,
}

impl MutantServer {
    pub(crate) fn start(wire: Wire, fault: Option<Fault>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let reference = Arc::new(Reference::new(fault));
        let over = Arc::clone(&is_over);
        thread::spawn(move || accept(&listener, wire, &reference, &over));
        Self { address, wire, is_over }
    }

    pub(crate) fn endpoint(&self) -> String {
        let scheme = match self.wire {
            Wire::Lines => "tcp+line",
            Wire::Http => "http",
            Wire::Ws => "ws",
        };
        format!("{scheme}://{}", self.address)
    }
}

impl Drop for MutantServer {
    fn drop(&mut self) {
        stop(&self.is_over, self.address);
    }
}

fn accept(listener: &TcpListener, wire: Wire, reference: &Arc<Reference>, over: &Arc<AtomicBool>) {
    let address = listener.local_addr().unwrap();
    for socket in listener.incoming() {
        let Ok(socket) = socket else { continue };
        if over.load(Ordering::SeqCst) {
            return;
        }
        let (reference, over) = (Arc::clone(reference), Arc::clone(over));
        thread::spawn(move || {
            let _ = socket.set_nodelay(true);
            let end = match wire {
                Wire::Lines => lines(&socket, &reference),
                Wire::Http => http::connection(&socket, &reference),
                Wire::Ws => ws::connection(&socket, &reference),
            };
            if matches!(end, Ok(End::Server)) {
                stop(&over, address);
            }
        });
    }
}

/// Ends the listener, which blocks in `accept`, with one more connection.
fn stop(is_over: &AtomicBool, address: SocketAddr) {
    is_over.store(true, Ordering::SeqCst);
    drop(TcpStream::connect(address));
}

/// Serves one message per line, until the client closes the connection.
fn lines(socket: &TcpStream, reference: &Arc<Reference>) -> io::Result<End> {
    if reference.has(Fault::PacketIsMessage) || reference.has(Fault::OneMessageAPacket) {
        return packets(socket, reference);
    }
    let mut reader = BufReader::new(socket);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(MAX_MESSAGE).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(End::Connection);
        }
        if reference.has(Fault::IdOfTheConnection) {
            let (reference, socket) = (Arc::clone(reference), socket.try_clone()?);
            thread::spawn(move || answer(&socket, &reference, &line));
            continue;
        }
        if let Some(end) = answer(socket, reference, &line)? {
            return Ok(end);
        }
    }
}

fn answer(mut socket: &TcpStream, reference: &Reference, line: &[u8]) -> io::Result<Option<End>> {
    match reference.answers(line) {
        Ok(answers) => {
            for answer in answers {
                socket.write_all(format!("{answer}\n").as_bytes())?;
            }
            Ok(None)
        }
        Err(end) => Ok(Some(end)),
    }
}

/// Treats one read as one message, or ignores the rest of a read.
fn packets(mut socket: &TcpStream, reference: &Reference) -> io::Result<End> {
    let mut room = vec![0; 64 << 10];
    let mut input = Vec::new();
    loop {
        let read = socket.read(&mut room)?;
        if read == 0 {
            return Ok(End::Connection);
        }
        input.extend_from_slice(&room[..read]);
        if reference.has(Fault::PacketIsMessage) {
            for line in input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                answer(socket, reference, line)?;
            }
            input.clear();
        } else if let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            answer(socket, reference, &input[..end])?;
            input.clear();
        }
    }
}
