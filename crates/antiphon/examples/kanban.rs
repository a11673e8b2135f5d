//! A kanban board: a complete service in one file.
//!
//! Two contracts on shared state, authentication, a subscription, OpenRPC, metrics, HTTP, WebSocket and a
//! Unix socket at once, a client that reconnects, and a test without a socket.
//!
//! `cargo run -p antiphon --features full --example kanban`

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use antiphon::http::{HeaderValue, header::AUTHORIZATION};
use antiphon::layer::{Auth, Metrics};
use antiphon::openrpc::Info;
use antiphon::schemars::JsonSchema;
use antiphon::{
    BindError, CancellationToken, Client, Context, Endpoint, Handler, Identity, Reconnect,
    RpcError, Server,
};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::{self, error::RecvError};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "antiphon::schemars")]
struct Card {
    id: u64,
    title: String,
    owner: String,
    column: Column,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "antiphon::schemars")]
enum Column {
    Todo,
    Doing,
    Done,
}

#[derive(Debug, PartialEq, RpcError)]
enum BoardError {
    #[rpc(code = 1, message = "the title is empty")]
    EmptyTitle,
    #[rpc(code = 2, message = "there is no such card")]
    NoSuchCard { id: u64 },
    #[rpc(code = 3, message = "changes were missed; list the cards again")]
    MissedChanges { count: u64 },
}

#[antiphon::rpc(namespace = "cards")]
trait Cards {
    /// Adds a card to the first column. The caller owns it.
    fn add(&self, cx: Context, title: String) -> Result<Card, BoardError>;

    /// Moves a card to another column.
    fn move_to(&self, id: u64, column: Column) -> Result<Card, BoardError>;

    /// Lists the cards of one column, or all cards.
    #[method(idempotent)]
    fn list(&self, column: Option<Column>) -> Result<Vec<Card>, BoardError>;

    /// Sends every card that is added or moved.
    #[subscription]
    async fn changes(
        &self,
    ) -> Result<impl Stream<Item = Result<Card, BoardError>> + Send + 'static, BoardError>;
}

#[antiphon::rpc(namespace = "archive")]
trait Archive {
    /// Removes the finished cards, and returns their number.
    fn remove_done(&self) -> Result<usize, BoardError>;
}

/// The state that both contracts share.
struct Board {
    next_id: AtomicU64,
    cards: Mutex<Vec<Card>>,
    changes: broadcast::Sender<Card>,
}

impl Board {
    fn new() -> Arc<Self> {
        let (next_id, changes) = (AtomicU64::new(1), broadcast::channel(64).0);
        Arc::new(Self { next_id, cards: Mutex::default(), changes })
    }

    fn cards(&self) -> MutexGuard<'_, Vec<Card>> {
        self.cards.lock().expect("no handler panics while it holds the lock")
    }

    /// Sends a card to its followers, if there are any.
    fn changed(&self, card: &Card) -> Card {
        let _ = self.changes.send(card.clone());
        card.clone()
    }
}

impl Cards for Board {
    fn add(&self, cx: Context, title: String) -> Result<Card, BoardError> {
        if title.trim().is_empty() {
            return Err(BoardError::EmptyTitle);
        }
        let owner = cx.identity().map_or("nobody", Identity::name).to_owned();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let card = Card { id, title, owner, column: Column::Todo };
        self.cards().push(card.clone());
        Ok(self.changed(&card))
    }

    fn move_to(&self, id: u64, column: Column) -> Result<Card, BoardError> {
        let mut cards = self.cards();
        let card = cards.iter_mut().find(|it| it.id == id).ok_or(BoardError::NoSuchCard { id })?;
        card.column = column;
        Ok(self.changed(card))
    }

    fn list(&self, column: Option<Column>) -> Result<Vec<Card>, BoardError> {
        let wanted = |card: &&Card| column.is_none_or(|column| card.column == column);
        Ok(self.cards().iter().filter(wanted).cloned().collect())
    }

    async fn changes(
        &self,
    ) -> Result<impl Stream<Item = Result<Card, BoardError>> + Send + 'static, BoardError> {
        Ok(stream::unfold(self.changes.subscribe(), |mut changes| async move {
            let change = match changes.recv().await {
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(count)) => Err(BoardError::MissedChanges { count }),
                Ok(card) => Ok(card),
            };
            Some((change, changes))
        }))
    }
}

impl Archive for Board {
    fn remove_done(&self) -> Result<usize, BoardError> {
        let is_done = |card: &mut Card| card.column == Column::Done;
        Ok(self.cards().extract_if(.., is_done).count())
    }
}

/// The service: both contracts, their description, authentication and metrics.
fn service(board: Arc<Board>) -> (impl Handler, Metrics) {
    let router = Cards::into_router(board.clone())
        .merge(Archive::into_router(board))
        .discoverable(Info::new("kanban", "1.0.0"));
    let metrics = Metrics::new(router.names());
    (router.layer(Auth::new().bearer("s3cret", "ada")).layer(metrics.clone()), metrics)
}

type Running = (Endpoint, CancellationToken, tokio::task::JoinHandle<std::io::Result<()>>);

/// Serves the board on a port, by HTTP and WebSocket, and on a Unix socket.
async fn start(board: Arc<Board>, port: &str, socket: &str) -> Result<Running, BindError> {
    let (service, metrics) = service(board);
    let server = Server::bind(port).await?.and(socket).await?;
    let server = server.page("/metrics", Metrics::CONTENT_TYPE, move || metrics.render());
    // A process that can open the Unix socket needs no token.
    let server = server.on_connect(|connection| {
        if connection.transport == "unix" {
            connection.extensions.insert(Identity::new("local"));
        }
    });
    let (endpoint, stop) = (server.endpoint().clone(), CancellationToken::new());
    let task = tokio::spawn(server.serve_until(service, stop.clone().cancelled_owned()));
    Ok((endpoint, stop, task))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket =
        format!("unix:{}/kanban-{}.sock", std::env::temp_dir().display(), std::process::id());
    let board = Board::new();
    let (http, stop, task) = start(board.clone(), "http://127.0.0.1:0", &socket).await?;

    // Ada works over a WebSocket. Her client survives a restart of the server.
    let ada = Client::builder()
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"))
        .reconnect(Reconnect::new().idempotent(CardsClient::IDEMPOTENT))
        .connect(&http.as_ws())
        .await?;
    let cards = CardsClient::new(&ada);
    let mut changes = cards.changes().await?;
    let card = cards.add("write the guide".to_owned()).await?;
    println!("{} adds `{}`", card.owner, changes.next().await.ok_or("no change")??.title);
    let refused = cards.move_to(7, Column::Done).await.expect_err("there is no such card");
    println!("refused: {refused}");

    // The server restarts on the same port.
    stop.cancel();
    task.await??;
    let (_, stop, task) = start(board, &http.to_string(), &socket).await?;
    cards.move_to(card.id, Column::Done).await?;
    println!("cards in Done after the restart: {}", cards.list(Some(Column::Done)).await?.len());

    let local = ArchiveClient::new(&Client::connect(&socket).await?);
    println!("archived over the Unix socket: {}", local.remove_done().await?);
    let stranger = CardsClient::new(&Client::connect(&http).await?);
    let refused = stranger.list(None).await.expect_err("a stranger has no token");
    println!("over HTTP without a token: {refused}");
    stop.cancel();
    Ok(task.await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_card_moves_through_the_columns() {
        let cards = CardsClient::in_process(Board::new());
        let refused = cards.add(" ".to_owned()).await.unwrap_err();
        assert_eq!(refused.as_error(), Some(BoardError::EmptyTitle));
        let card = cards.add("test".to_owned()).await.unwrap();
        cards.move_to(card.id, Column::Doing).await.unwrap();
        assert_eq!(cards.list(Some(Column::Doing)).await.unwrap()[0].title, "test");
    }
}
