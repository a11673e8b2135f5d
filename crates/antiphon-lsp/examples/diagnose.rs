//! The smallest client: it starts a language server, opens a file, and prints its diagnostics.
//!
//! `cargo run --example diagnose -- exec:clangd src/main.c c`

use std::error::Error;
use std::time::Duration;

use antiphon_lsp::{LanguageClient, ServerSession, file_uri};

/// This client has no user interface, so the default responses of a session are enough.
struct Headless;

impl LanguageClient for Headless {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, language] = &args[..] else {
        return Err("usage: diagnose ENDPOINT FILE LANGUAGE".into());
    };
    let text = std::fs::read_to_string(path)?;
    let session = ServerSession::builder().root(".")?.start(server.as_str(), Headless).await?;
    let document = session.open(file_uri(path)?, language.clone(), text).await?;
    let found = tokio::time::timeout(Duration::from_secs(60), document.diagnostics()).await??;
    for diagnostic in found.diagnostics {
        let (line, message) =
            (diagnostic.range.start.line, serde_json::to_value(diagnostic.message)?);
        println!("{path}:{}: {}", line + 1, message.as_str().unwrap_or_default());
    }
    document.close().await?;
    session.shutdown().await?;
    Ok(())
}
