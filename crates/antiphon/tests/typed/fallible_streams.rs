//! Subscriptions whose streams have items of type `Result`.

use antiphon::{Client, Context, ErrorObject, Router, RpcError, Sink, SubscriptionError};
use futures_util::stream::{self, BoxStream, Stream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

#[antiphon::rpc]
trait Feed {
    #[subscription]
    async fn rows(
        &self,
        count: u32,
    ) -> Result<impl Stream<Item = Result<u32, FeedError>> + Send + 'static, ErrorObject>;

    #[subscription(item = Result<String, FeedError>)]
    fn lines(&self) -> Result<BoxStream<'static, Result<String, FeedError>>, ErrorObject>;

    #[subscription]
    fn tables(&self) -> Result<impl Stream<Item = QueryResult<u32>> + Send + 'static, ErrorObject>;

    #[subscription]
    fn aliased(
        &self,
    ) -> Result<impl Stream<Item = alias::Result<u32>> + Send + 'static, ErrorObject>;
}

/// A value whose name ends in `Result`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct QueryResult<T> {
    rows: Vec<T>,
}

mod alias {
    pub(super) type Result<T> = std::result::Result<T, super::FeedError>;
}

#[derive(Debug, PartialEq, RpcError)]
enum FeedError {
    #[rpc(code = -32070, message = "the table is gone")]
    Gone { row: u32 },
}

struct Table;

impl Feed for Table {
    async fn rows(
        &self,
        count: u32,
    ) -> Result<impl Stream<Item = Result<u32, FeedError>> + Send + 'static, ErrorObject> {
        let gone = stream::iter([Err(FeedError::Gone { row: count }), Ok(99)]);
        Ok(stream::iter(0..count).map(Ok).chain(gone))
    }

    fn lines(&self) -> Result<BoxStream<'static, Result<String, FeedError>>, ErrorObject> {
        Ok(stream::iter(["a", "b"]).map(|line| Ok(line.to_owned())).boxed())
    }

    fn tables(&self) -> Result<impl Stream<Item = QueryResult<u32>> + Send + 'static, ErrorObject> {
        Ok(stream::iter([QueryResult { rows: vec![1, 2] }]))
    }

    fn aliased(
        &self,
    ) -> Result<impl Stream<Item = alias::Result<u32>> + Send + 'static, ErrorObject> {
        Ok(stream::iter([Err(FeedError::Gone { row: 3 })]))
    }
}

#[tokio::test]
async fn an_error_ends_the_subscription_of_a_contract() {
    let feed = FeedClient::new(Client::in_process(Table.into_router()));
    let mut rows = feed.rows(2).await.unwrap();
    assert_eq!(rows.next().await.unwrap().unwrap(), 0);
    assert_eq!(rows.next().await.unwrap().unwrap(), 1);
    let error = rows.next().await.unwrap().unwrap_err();
    assert_eq!(error.as_error(), Some(FeedError::Gone { row: 2 }));
    assert!(rows.next().await.is_none(), "an item follows the error");
    let lines: Vec<String> = feed.lines().await.unwrap().try_collect().await.unwrap();
    assert_eq!(lines, ["a", "b"]);
}

#[tokio::test]
async fn an_error_before_the_first_item_ends_the_subscription() {
    let feed = FeedClient::new(Client::in_process(Table.into_router()));
    let mut rows = feed.rows(0).await.unwrap();
    let error = rows.next().await.unwrap().unwrap_err();
    assert_eq!(error.as_error(), Some(FeedError::Gone { row: 0 }));
}

#[tokio::test]
async fn only_the_name_result_means_an_item_that_can_fail() {
    let feed = FeedClient::in_process(Table);
    let tables: Vec<_> = feed.tables().await.unwrap().try_collect().await.unwrap();
    assert_eq!(tables, [QueryResult { rows: vec![1, 2] }]);
    let error = feed.aliased().await.unwrap().try_next().await.unwrap_err();
    assert_eq!(error.as_error(), Some(FeedError::Gone { row: 3 }));
}

#[test]
#[should_panic(expected = "the items of `subscribe_rows` are `Result`s: use `try_subscription`")]
fn a_plain_subscription_refuses_results() {
    let _ = Router::new().subscription("rows", |(): (), _cx: Context| async {
        Ok(stream::iter([Ok::<u32, String>(1)]))
    });
}

#[tokio::test]
async fn a_sink_refuses_results() {
    let router =
        Router::new().subscription_with("rows", |(): (), sink: Sink, _cx: Context| async move {
            sink.accept();
            Ok(sink.send(Ok::<u32, String>(1)).await?)
        });
    let mut rows = Client::in_process(router).subscribe::<u32>("rows", ()).await.unwrap();
    let error = rows.next().await.unwrap().unwrap_err();
    assert!(
        matches!(&error, SubscriptionError::Failed(error) if error.code.0 == -32603),
        "{error}"
    );
}
