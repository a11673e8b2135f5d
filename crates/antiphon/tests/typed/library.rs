//! The contract that the tests use, and a service for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon::{Client, Context, Handler, RpcError, Server};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// A library of books.
#[antiphon::rpc(namespace = "library", separator = ".")]
pub(crate) trait Library {
    /// Subtracts one number from another.
    async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, LibraryError>;

    /// A page of the catalogue.
    #[method(name = "page", aliases = ["list"], idempotent)]
    async fn page_of(
        &self,
        cx: Context,
        offset: Option<u32>,
        #[param(default = 10)] limit: u32,
        #[param(name = "orderBy", default)] order: String,
    ) -> Result<Page, LibraryError>;

    /// Lends a book.
    #[deprecated]
    async fn lend(&self, book: Book) -> Result<(), LibraryError>;

    /// Gives a list back, which is the whole params.
    async fn echo(&self, #[params] values: Vec<i64>) -> Result<Vec<i64>, LibraryError>;

    /// Nothing in, nothing out, and a body of its own.
    async fn ping(&self) -> Result<String, std::convert::Infallible> {
        Ok("pong".to_owned())
    }

    /// Books came back.
    #[notification]
    async fn returned(&self, books: Vec<Book>, note: Option<String>);

    #[cfg(any())]
    async fn absent(&self) -> Result<NoSuchType, LibraryError>;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub title: String,
    pub pages: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Page {
    pub offset: Option<u32>,
    pub limit: u32,
    pub order: String,
    pub transport: String,
}

#[derive(Debug, PartialEq, thiserror::Error, RpcError)]
pub enum LibraryError {
    #[error("the result is out of range")]
    #[rpc(code = -32050)]
    Overflow,
    #[error("{title} is lent until {until}")]
    #[rpc(code = -32051)]
    Lent { title: String, until: u32 },
    #[error("no shelf {0}")]
    #[rpc(code = -32052, message = "no such shelf")]
    Shelf(String),
}

/// The content of a notification.
type Told = (Vec<Book>, Option<String>);

/// A service that forwards its notifications to a channel.
pub(crate) struct Shelves(mpsc::Sender<Told>);

impl Library for Shelves {
    async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, LibraryError> {
        minuend.checked_sub(subtrahend).ok_or(LibraryError::Overflow)
    }

    async fn page_of(
        &self,
        cx: Context,
        offset: Option<u32>,
        limit: u32,
        order: String,
    ) -> Result<Page, LibraryError> {
        Ok(Page { offset, limit, order, transport: cx.connection().transport.to_owned() })
    }

    async fn lend(&self, book: Book) -> Result<(), LibraryError> {
        match &*book.title {
            "Emma" => Err(LibraryError::Lent { title: book.title, until: 7 }),
            "Ulysses" => Err(LibraryError::Shelf("J".to_owned())),
            _ => Ok(()),
        }
    }

    async fn echo(&self, values: Vec<i64>) -> Result<Vec<i64>, LibraryError> {
        Ok(values)
    }

    async fn returned(&self, books: Vec<Book>, note: Option<String>) {
        self.0.send((books, note)).await.unwrap();
    }
}

/// The transports of these tests.
pub(crate) const WIRES: [&str; 2] = ["memory:typed-*", "tcp://127.0.0.1:0"];

/// Serves a router on this endpoint until the test ends, and returns a client.
pub(crate) async fn serve(wire: &str, handler: impl Handler) -> Client {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = NAMES.fetch_add(1, Ordering::Relaxed).to_string();
    let server = Server::bind(&wire.replace('*', &name)).await.unwrap();
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(handler));
    Client::connect(&address).await.unwrap()
}

/// A service of the contract, and the receiver of its notifications.
pub(crate) fn shelves() -> (antiphon::Router, mpsc::Receiver<Told>) {
    let (tell, told) = mpsc::channel(8);
    (Shelves(tell).into_router(), told)
}
