//! A TCP or Unix socket with timeouts.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use super::PATIENCE;

/// A connection with a timeout for every read and write.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn tcp(address: &str) -> Self {
        Self::Tcp(connect(address))
    }

    pub(crate) fn unix(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::Unix(socket)
    }

    /// Closes the sending direction.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write).unwrap(),
            Self::Unix(socket) => socket.shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Returns the TCP socket.
    pub(crate) fn bare(&self) -> &TcpStream {
        match self {
            Self::Tcp(socket) => socket,
            _ => panic!("only TCP is needed"),
        }
    }
}

fn connect(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    /// Writes without a buffer, so `flush` does nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
