//! A tool that serves on its stdin and stdout, as an editor or an agent would start it, and a program
//! that starts it.
//!
//! `cargo run -p antiphon --example stdio` starts itself as the tool, and calls it. The tool alone is
//! `stdio serve`. It accepts one JSON text per line or `Content-Length` framing, and detects which one
//! the client uses.

use antiphon::{Client, Context, Endpoint, Router, Server};

#[derive(serde::Serialize, serde::Deserialize, Debug)]
struct Count {
    lines: usize,
    words: usize,
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new().method("count", |(text,): (String,), _cx: Context| async move {
        // stdout belongs to the protocol; messages for people go to stderr.
        eprintln!("the tool counts {} bytes", text.len());
        Ok(Count { lines: text.lines().count(), words: text.split_whitespace().count() })
    });
    // Ends after the end of stdin, when every request has its response.
    Ok(Server::bind("stdio:").await?.serve(router).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve().await;
    }
    // Like `exec:path/to/stdio serve`, but safe for any character in the path.
    let tool = std::env::current_exe()?.display().to_string();
    let tool = Endpoint::Exec { command: vec![tool, "serve".to_owned()], framing: None };
    let client = Client::connect(&tool).await?;
    let count: Count = client.call("count", ("one two three\nfour five six",)).await?;
    println!("{count:?}");
    client.close().await; // waits until the tool has exited
    Ok(())
}
