//! A chat: people call the room, and the room calls them back on the same connection.
//!
//! `cargo run -p antiphon --features full --example chat`

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::{CallError, Client, Context, Endpoint, Server};

/// The methods of the room.
#[antiphon::rpc(namespace = "room")]
trait Room {
    /// Joins under a name, and returns the names of the people in the room.
    async fn join(&self, cx: Context, name: String) -> Result<Vec<String>, CallError>;

    /// Sends a text to all others, and returns their reactions.
    async fn say(&self, from: String, text: String) -> Result<Vec<String>, CallError>;
}

/// The methods of each person.
#[antiphon::rpc(namespace = "person")]
trait Person {
    /// Receives a text, and returns a reaction.
    async fn hear(&self, from: String, text: String) -> Result<String, CallError>;
}

#[derive(Default)]
struct Lobby {
    people: Mutex<Vec<(String, Arc<PersonClient>)>>,
}

impl Lobby {
    fn people(&self) -> MutexGuard<'_, Vec<(String, Arc<PersonClient>)>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room for Lobby {
    async fn join(&self, cx: Context, name: String) -> Result<Vec<String>, CallError> {
        // The client for calls back to the caller; it works as long as the connection is open.
        let person = Arc::new(PersonClient::new(cx.peer()?));
        let mut people = self.people();
        let there = people.iter().map(|(name, _)| name.clone()).collect();
        people.push((name, person));
        Ok(there)
    }

    async fn say(&self, from: String, text: String) -> Result<Vec<String>, CallError> {
        let people = self.people().clone();
        let mut reactions = Vec::new();
        for (name, person) in people.into_iter().filter(|(name, _)| *name != from) {
            // A call back while the call of the caller is in flight does not deadlock.
            match person.hear(from.clone(), text.clone()).await {
                Ok(reaction) => reactions.push(format!("{name} {reaction}")),
                Err(_) => self.people().retain(|(other, _)| *other != name),
            }
        }
        Ok(reactions)
    }
}

struct Human {
    name: &'static str,
    habit: &'static str,
}

impl Person for Human {
    async fn hear(&self, from: String, text: String) -> Result<String, CallError> {
        println!("[{}] {from}: {text}", self.name);
        Ok(self.habit.to_owned())
    }
}

async fn enter(
    endpoint: &Endpoint,
    human: Human,
) -> Result<RoomClient, Box<dyn std::error::Error>> {
    let name = human.name;
    let client = Client::builder().handler(human.into_router()).connect(endpoint).await?;
    let room = RoomClient::new(&client);
    println!("[{name}] joined; already here: {:?}", room.join(name.to_owned()).await?);
    Ok(room)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::bind("ws://127.0.0.1:0").await?;
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve(Lobby::default().into_router()));

    let ada = enter(&endpoint, Human { name: "Ada", habit: "nods" }).await?;
    let bob = enter(&endpoint, Human { name: "Bob", habit: "laughs" }).await?;
    let reactions = ada.say("Ada".to_owned(), "Is anybody there?".to_owned()).await?;
    println!("{reactions:?}");
    let reactions = bob.say("Bob".to_owned(), "Only us two.".to_owned()).await?;
    println!("{reactions:?}");
    Ok(())
}
