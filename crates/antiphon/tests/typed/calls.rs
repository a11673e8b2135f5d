//! The typed client and the service, over several transports and over any caller.

use std::sync::Arc;
use std::time::Duration;

use antiphon::{
    BatchEntry, BoxFuture, CallError, Caller, Client, Context, Invocation, RawJson, Router,
};
use tokio::sync::mpsc;

use crate::library::{Book, LibraryClient, Page, WIRES, serve, shelves};

#[tokio::test]
async fn every_kind_of_method_over_each_transport() {
    for wire in WIRES {
        let (router, mut told) = shelves();
        let library = LibraryClient::new(&serve(wire, router).await);
        assert_eq!(library.subtract(42, 23).await.unwrap(), 19);
        assert_eq!(library.echo(vec![1, 2, 3]).await.unwrap(), [1, 2, 3]);
        assert_eq!(library.ping().await.unwrap(), "pong");
        let page = library.page_of(None, 5, "title".to_owned()).timeout(Duration::from_secs(9));
        let transport = wire.split(':').next().unwrap().to_owned();
        let order = "title".to_owned();
        assert_eq!(page.await.unwrap(), Page { offset: None, limit: 5, order, transport });
        let book = Book { title: "Middlemarch".to_owned(), pages: 880 };
        library.returned(vec![book.clone()], None).await.unwrap();
        assert_eq!(told.recv().await.unwrap(), (vec![book], None));
    }
}

#[tokio::test]
async fn names_on_the_wire_follow_the_contract() {
    let (router, _told) = shelves();
    let mut names: Vec<_> = router.names().map(str::to_owned).collect();
    names.sort();
    let expected = ["echo", "lend", "page", "ping", "returned", "subtract"];
    let expected: Vec<_> = expected.iter().map(|name| format!("library.{name}")).collect();
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["list"]);
    assert_eq!(LibraryClient::IDEMPOTENT, ["library.page"]);
    let _ = antiphon::Reconnect::new().idempotent(LibraryClient::IDEMPOTENT);
}

#[tokio::test]
async fn a_typed_call_can_be_part_of_a_batch() {
    let (router, _told) = shelves();
    let client = serve(WIRES[0], router).await;
    let library = LibraryClient::new(&client);
    let mut batch = client.batch();
    let difference = batch.push(library.subtract(3, 1));
    let text = batch.push(library.ping());
    let mut replies = batch.send().await.unwrap();
    assert_eq!(replies.take(text).unwrap(), "pong");
    assert_eq!(replies.take(difference).unwrap(), 2);
}

#[tokio::test]
async fn a_typed_client_keeps_its_connection_open() {
    let (router, _told) = shelves();
    let library = LibraryClient::new(serve(WIRES[0], router).await);
    assert_eq!(library.clone().subtract(3, 1).await.unwrap(), 2);
}

/// A custom caller that records its calls.
struct Recorder(mpsc::UnboundedSender<String>);

impl Recorder {
    fn record(&self, call: &Invocation) {
        let params = call.params.as_ref().map_or("none", |params| params.as_json().as_str());
        self.0.send(format!("{} {params}", call.method)).unwrap();
    }
}

impl Caller for Recorder {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.record(&call);
        Box::pin(std::future::ready(Ok(RawJson::NULL)))
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        self.record(&notification);
        Box::pin(std::future::ready(Ok(())))
    }

    fn send_batch(
        &self,
        _: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[antiphon::rpc(client, params = "by_position", rename_all = "camelCase", namespace = "eth")]
pub trait Ethereum {
    async fn get_block_by_number(&self, block: String, full: bool) -> Result<(), CallError>;
    async fn get_logs(
        &self,
        from_block: Option<u64>,
        topic: String,
        to_block: Option<u64>,
        limit: Option<u64>,
    ) -> Result<(), CallError>;
    async fn chain_id(&self) -> Result<(), CallError>;
}

#[antiphon::rpc(rename_all = "camelCase")]
pub trait Named {
    async fn get_logs(&self, from_block: Option<u64>, topic: String) -> Result<(), CallError>;
    async fn hover(&self, #[params] at: Book) -> Result<(), CallError>;
    #[notification]
    async fn did_open(&self, text_document: Option<String>);
    #[method(name = "$/now")]
    async fn now(&self, r#type: u8) -> Result<(), CallError>;
}

#[tokio::test]
async fn params_are_sent_by_name_or_by_position_as_the_contract_says() {
    let (record, mut recorded) = mpsc::unbounded_channel();
    let caller: Arc<dyn Caller> = Arc::new(Recorder(record));
    let ethereum = EthereumClient::new(caller.clone());
    ethereum.get_block_by_number("latest".to_owned(), false).await.unwrap();
    ethereum.get_logs(None, "a".to_owned(), Some(2), None).await.unwrap();
    ethereum.get_logs(Some(1), "a".to_owned(), None, None).await.unwrap();
    ethereum.chain_id().await.unwrap();
    let named = NamedClient::new(caller);
    named.get_logs(None, "a".to_owned()).await.unwrap();
    named.get_logs(Some(1), "a".to_owned()).await.unwrap();
    named.hover(Book { title: "Emma".to_owned(), pages: 474 }).await.unwrap();
    named.did_open(None).await.unwrap();
    named.now(1).await.unwrap();
    drop((ethereum, named));
    for expected in [
        r#"eth_getBlockByNumber ["latest",false]"#,
        r#"eth_getLogs [null,"a",2]"#,
        r#"eth_getLogs [1,"a"]"#,
        "eth_chainId none",
        r#"getLogs {"topic":"a"}"#,
        r#"getLogs {"fromBlock":1,"topic":"a"}"#,
        r#"hover {"title":"Emma","pages":474}"#,
        "didOpen {}",
        r#"$/now {"type":1}"#,
    ] {
        assert_eq!(recorded.recv().await.unwrap(), expected);
    }
    assert_eq!(recorded.recv().await, None);
}

/// Types and arguments with names that the generated code might use.
#[antiphon::rpc]
trait Names {
    async fn names(&self, service: Sent, router: Places, cx: Certain) -> Result<Sent, CallError>;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Sent(u8);
type Places = Sent;
type Certain = Sent;

struct Adder;

impl Names for Adder {
    async fn names(&self, service: Sent, router: Sent, cx: Sent) -> Result<Sent, CallError> {
        Ok(Sent(service.0 + router.0 + cx.0))
    }
}

#[tokio::test]
async fn names_of_the_user_do_not_collide_with_generated_names() {
    let adder = NamesClient::new(&serve(WIRES[0], Adder.into_router()).await);
    assert_eq!(adder.names(Sent(1), Sent(2), Sent(3)).await.unwrap().0, 6);
}

/// The futures of a typed client are `Send`, those of notifications too.
#[test]
fn futures_are_send() {
    fn send(_: impl Send) {}
    let (record, _recorded) = mpsc::unbounded_channel();
    let caller: Arc<dyn Caller> = Arc::new(Recorder(record));
    let named = NamedClient::new(caller);
    send(named.did_open(None));
    send(std::future::IntoFuture::into_future(named.now(1)));
}

#[tokio::test]
async fn a_contract_can_be_merged_with_other_methods() {
    let (router, _told) = shelves();
    let router =
        Router::new().nest("v1.", router).method("plain", |(): (), _cx: Context| async { Ok(1) });
    let client: Client = serve(WIRES[0], router).await;
    assert_eq!(client.call::<String>("v1.library.ping", ()).await.unwrap(), "pong");
    assert_eq!(client.call::<i64>("plain", ()).await.unwrap(), 1);
}
