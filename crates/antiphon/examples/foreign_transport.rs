//! A custom transport: frames with a length prefix, over any byte stream.
//!
//! A transport is a `Stream` and a `Sink` of whole messages. `LengthDelimitedCodec` of `tokio-util`
//! provides both, with other types for items and errors.
//!
//! `cargo run -p antiphon --example foreign_transport`

use antiphon::transport::{Transport, TransportError};
use antiphon::{Client, Connection, Context, Router, Server};
use futures_util::{SinkExt as _, StreamExt as _, future};
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

fn length_prefixed(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> impl Transport {
    let codec = LengthDelimitedCodec::builder().max_frame_length(1 << 20).new_codec();
    Framed::new(io, codec)
        .map(|frame| frame.map(BytesMut::freeze).map_err(TransportError::from))
        .with(|message: Bytes| future::ok::<_, TransportError>(message))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (left, right) = duplex(64 * 1024);

    let router = Router::new().method("wire", |(): (), cx: Context| async move {
        Ok((cx.connection().transport, cx.connection().remote))
    });
    let facts = Connection::new("length-prefixed").with_remote("192.0.2.7:4000".parse().ok());
    let serving = tokio::spawn(Server::from_transport(length_prefixed(left), facts).serve(router));

    let client = Client::over(length_prefixed(right));
    let (wire, remote): (String, String) = client.call("wire", ()).await?;
    println!("{remote} calls over {wire}");
    client.close().await;
    serving.await??;
    println!("the server ended with its transport");
    Ok(())
}
