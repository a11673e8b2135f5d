//! A contract in each direction of one connection.

use antiphon::{CallError, Client, Context, RpcError, Server};
use tokio::sync::mpsc;

/// The contract of the server.
#[antiphon::rpc]
pub trait Chat {
    /// Joins the room. The server greets the client before it responds.
    async fn join(&self, cx: Context, name: String) -> Result<String, ChatError>;
}

/// The contract of each client.
#[antiphon::rpc(namespace = "on")]
pub trait ChatEvents {
    /// A message of another client.
    #[notification]
    async fn said(&self, text: String);

    /// Chooses a colour.
    async fn colour(&self, choices: Vec<String>) -> Result<String, ChatError>;
}

#[derive(Debug, RpcError)]
pub enum ChatError {
    #[rpc(code = -32020, message = "no colour is left")]
    NoColour,
    #[rpc(transparent)]
    Caller(CallError),
}

impl From<CallError> for ChatError {
    fn from(error: CallError) -> Self {
        Self::Caller(error)
    }
}

struct Room;

impl Chat for Room {
    async fn join(&self, cx: Context, name: String) -> Result<String, ChatError> {
        let events = ChatEventsClient::new(cx.peer()?.clone());
        events.said(format!("hello, {name}")).await?;
        let colour = events.colour(vec!["red".to_owned(), "blue".to_owned()]).await?;
        Ok(format!("{name} is {colour}"))
    }
}

struct Screen {
    shown: mpsc::Sender<String>,
    favourite: Option<&'static str>,
}

impl ChatEvents for Screen {
    async fn said(&self, text: String) {
        self.shown.send(text).await.unwrap();
    }

    async fn colour(&self, choices: Vec<String>) -> Result<String, ChatError> {
        choices
            .into_iter()
            .find(|colour| Some(&**colour) == self.favourite)
            .ok_or(ChatError::NoColour)
    }
}

#[tokio::test]
async fn each_side_calls_the_contract_of_the_other() {
    for (place, favourite) in [Some("blue"), None].into_iter().enumerate() {
        let server = Server::bind(&format!("memory:chat-{place}")).await.unwrap();
        tokio::spawn(server.serve(Room.into_router()));
        let (show, mut shown) = mpsc::channel(8);
        let screen = Screen { shown: show, favourite };
        let client = Client::builder().handler(screen.into_router());
        let client = client.connect(&format!("memory:chat-{place}")).await.unwrap();
        let joined = ChatClient::new(&client).join("Ada".to_owned()).await;
        assert_eq!(shown.recv().await.unwrap(), "hello, Ada");
        match favourite {
            Some(_) => assert_eq!(joined.unwrap(), "Ada is blue"),
            // The error of the client passed through the server and back.
            None => {
                let error = joined.unwrap_err();
                assert!(matches!(error.as_error(), Some(ChatError::NoColour)), "{error}");
            }
        }
    }
}
