//! Contracts whose names are those of the generated code, of keywords, or of the prelude.

use antiphon::{Client, ErrorObject, Topic};
use futures_util::TryStreamExt as _;
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};

/// Functions with the names of variables in the generated code.
fn schema() -> u32 {
    3
}

fn router() -> u32 {
    4
}

fn service() -> Topic {
    Topic::ethereum("heads")
}

fn kind() -> Topic {
    Topic::with_names("follow", "followed", "unfollow")
}

#[antiphon::rpc]
trait Names {
    async fn r#type(&self, r#match: u32) -> Result<u32, ErrorObject>;

    fn defaults(
        &self,
        #[param(default = schema())] one: u32,
        #[param(default = router())] two: u32,
    ) -> Result<u32, ErrorObject>;

    /// Params with the names of variables in the generated code.
    #[allow(clippy::too_many_arguments)]
    async fn variables(
        &self,
        cx: u32,
        params: u32,
        client: u32,
        result: u32,
        router: u32,
        service: u32,
        values: u32,
        map: Option<u32>,
    ) -> Result<u32, ErrorObject>;

    #[notification]
    async fn sent(&self, sent: u32);

    async fn clone(&self) -> Result<u32, ErrorObject> {
        self.r#type(5).await
    }

    async fn call(&self, index: u32) -> Result<u32, ErrorObject>;

    #[subscription]
    async fn r#loop(&self) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject>;

    #[subscription(topic = service())]
    async fn heads(
        &self,
        service: u32,
    ) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject>;

    #[subscription(topic = kind())]
    async fn follow(
        &self,
        kind: u32,
    ) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject>;

    async fn größe(&self, länge: u32) -> Result<u32, ErrorObject>;
}

struct Service;

impl Names for Service {
    async fn r#type(&self, r#match: u32) -> Result<u32, ErrorObject> {
        Ok(r#match)
    }

    fn defaults(&self, one: u32, two: u32) -> Result<u32, ErrorObject> {
        Ok(10 * one + two)
    }

    async fn variables(
        &self,
        cx: u32,
        params: u32,
        client: u32,
        result: u32,
        router: u32,
        service: u32,
        values: u32,
        map: Option<u32>,
    ) -> Result<u32, ErrorObject> {
        let all = [cx, params, client, result, router, service, values, map.unwrap_or(9)];
        Ok(all.iter().fold(0, |sum, digit| 10 * sum + digit))
    }

    async fn sent(&self, _sent: u32) {}

    async fn call(&self, index: u32) -> Result<u32, ErrorObject> {
        Ok(index)
    }

    async fn r#loop(&self) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject> {
        Ok(stream::iter([1]))
    }

    async fn heads(
        &self,
        service: u32,
    ) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject> {
        Ok(stream::iter([service]))
    }

    async fn follow(
        &self,
        kind: u32,
    ) -> Result<impl Stream<Item = u32> + Send + 'static, ErrorObject> {
        Ok(stream::iter([kind]))
    }

    async fn größe(&self, länge: u32) -> Result<u32, ErrorObject> {
        Ok(länge)
    }
}

#[tokio::test]
async fn names_of_the_generated_code_are_free() {
    let names = NamesClient::in_process(Service);
    assert_eq!(names.variables(1, 2, 3, 4, 5, 6, 7, None).await.unwrap(), 12_345_679);
    names.sent(1).await.unwrap();
    assert_eq!(names.clone().await.unwrap(), 5);
    assert_eq!(names.call(6).await.unwrap(), 6);
    assert_eq!(names.heads(7).await.unwrap().try_next().await.unwrap(), Some(7));
    assert_eq!(names.follow(8).await.unwrap().try_next().await.unwrap(), Some(8));
    let client = Client::in_process(Names::into_router(Service));
    assert_eq!(client.call::<u32>("defaults", ()).await.unwrap(), 34);
}

#[tokio::test]
async fn a_raw_identifier_is_not_raw_on_the_wire() {
    let router = Names::into_router(Service);
    for name in ["type", "subscribe_loop", "unsubscribe_loop", "größe"] {
        assert!(router.names().any(|other| other == name), "{name}");
    }
    let client = Client::in_process(router);
    assert_eq!(client.call::<u32>("type", json!({"match": 1})).await.unwrap(), 1);
    assert_eq!(client.call::<u32>("größe", json!({"länge": 2})).await.unwrap(), 2);
    let names = NamesClient::new(client);
    assert_eq!(names.r#type(3).await.unwrap(), 3);
    assert_eq!(names.größe(4).await.unwrap(), 4);
    let items: Vec<u32> = names.r#loop().await.unwrap().try_collect().await.unwrap();
    assert_eq!(items, [1]);
}

mod keywords {
    use antiphon::ErrorObject;

    #[antiphon::rpc(namespace = "match")]
    pub(super) trait Match {
        fn one(&self) -> Result<u32, ErrorObject> {
            Ok(1)
        }
    }

    #[antiphon::rpc(namespace = "loop")]
    pub(super) trait r#Loop {
        fn two(&self) -> Result<u32, ErrorObject> {
            Ok(2)
        }
    }

    #[antiphon::rpc(namespace = "gen")]
    pub(super) trait Gen {
        fn three(&self) -> Result<u32, ErrorObject> {
            Ok(3)
        }
    }
}

#[antiphon::rpc(extends(keywords::Match, keywords::r#Loop, self::keywords::Gen))]
trait Keywords: keywords::Gen {}

impl keywords::Match for Service {}
impl keywords::r#Loop for Service {}
impl keywords::Gen for Service {}
impl Keywords for Service {}

#[tokio::test]
async fn the_function_of_an_extended_contract_can_be_a_keyword() {
    let client = KeywordsClient::in_process(Service);
    assert_eq!(client.r#match().one().await.unwrap(), 1);
    assert_eq!(client.r#loop().two().await.unwrap(), 2);
    assert_eq!(client.r#gen().three().await.unwrap(), 3);
}

/// Types of the user, with the names of the library and of the prelude.
#[allow(dead_code)]
mod own {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Context(pub(super) u32);

    #[allow(non_camel_case_types)]
    pub(super) struct bool;
    #[allow(non_camel_case_types)]
    pub(super) struct i64;
    #[allow(non_camel_case_types)]
    pub(super) struct str;
    #[allow(non_camel_case_types)]
    pub(super) struct usize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Sink(pub(super) u32);

    pub(super) struct Result;
    pub(super) struct Option;
    pub(super) struct Box;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Arc;
    pub(super) struct Client;
    pub(super) struct Router;
    pub(super) trait Send {}
    pub(super) trait Sized {}
    pub(super) trait Clone {}
    pub(super) trait Default {}
    pub(super) trait Into {}
}

/// No name of the prelude, and other types under these names.
#[no_implicit_prelude]
#[deny(warnings, unused, clippy::pedantic)]
mod shadowed {
    use ::futures_core::Stream;
    use ::std::result::Result::Ok as Fine;

    #[allow(unused_imports)]
    use super::own::*;

    type AnswerResult<T> = ::std::result::Result<T, Failure>;

    #[derive(::core::fmt::Debug, ::core::cmp::PartialEq, ::antiphon::RpcError)]
    pub(super) enum Failure {
        #[rpc(code = 1, message = "one")]
        One { r#type: u32 },
        #[rpc(code = 2, message = "two")]
        Two(u32, u32),
        #[rpc(transparent)]
        Other(::antiphon::ErrorObject),
    }

    #[::antiphon::rpc(namespace = "shop")]
    pub(super) trait Shop {
        #[method(idempotent)]
        async fn price(
            &self,
            cx: ::antiphon::Context,
            #[param(default = 3)] a: u32,
            #[param(default)] b: u32,
            c: ::std::option::Option<u32>,
        ) -> ::std::result::Result<u32, Failure>;

        #[method(blocking)]
        fn blocking(&self) -> ::std::result::Result<u32, Failure>;

        /// Params that are not the context and the sink of the library.
        async fn own(
            &self,
            #[param] context: Context,
            #[param(name = "s")] sink: Sink,
        ) -> ::std::result::Result<u32, Failure>;

        async fn whole(
            &self,
            #[params] all: ::std::vec::Vec<u8>,
        ) -> AnswerResult<::core::primitive::usize>;

        #[notification]
        async fn note(&self, note: u32);

        #[subscription]
        async fn ticks(
            &self,
        ) -> ::std::result::Result<impl Stream<Item = u32> + ::core::marker::Send + 'static, Failure>;

        #[subscription]
        async fn tries(
            &self,
        ) -> ::std::result::Result<
            impl Stream<Item = ::std::result::Result<u32, Failure>> + ::core::marker::Send + 'static,
            Failure,
        >;

        #[subscription(item = u32)]
        async fn sunk(&self, sink: ::antiphon::Sink) -> ::std::result::Result<(), Failure>;
    }

    #[::antiphon::rpc(params = "by_position")]
    pub(super) trait Ordered {
        fn ordered(&self, a: u32, b: ::std::option::Option<u32>) -> AnswerResult<u32>;
    }

    #[::antiphon::rpc(extends(Shop))]
    pub(super) trait Mall {}

    /// Its use by the generated code is no warning.
    #[deprecated]
    #[::antiphon::rpc(namespace = "old")]
    pub(super) trait Old {
        fn old(&self) -> ::std::result::Result<u32, Failure>;
    }

    impl Shop for super::Service {
        async fn price(
            &self,
            _cx: ::antiphon::Context,
            a: u32,
            b: u32,
            c: ::std::option::Option<u32>,
        ) -> ::std::result::Result<u32, Failure> {
            Fine(100 * a + 10 * b + c.unwrap_or(7))
        }

        fn blocking(&self) -> ::std::result::Result<u32, Failure> {
            ::std::result::Result::Err(Failure::One { r#type: 5 })
        }

        async fn own(&self, context: Context, sink: Sink) -> ::std::result::Result<u32, Failure> {
            Fine(context.0 + sink.0)
        }

        async fn whole(&self, all: ::std::vec::Vec<u8>) -> AnswerResult<::core::primitive::usize> {
            Fine(all.len())
        }

        async fn note(&self, _note: u32) {}

        async fn ticks(
            &self,
        ) -> ::std::result::Result<impl Stream<Item = u32> + ::core::marker::Send + 'static, Failure>
        {
            Fine(super::stream::iter([1]))
        }

        async fn tries(
            &self,
        ) -> ::std::result::Result<
            impl Stream<Item = ::std::result::Result<u32, Failure>> + ::core::marker::Send + 'static,
            Failure,
        > {
            Fine(super::stream::iter([::std::result::Result::Err(Failure::Two(1, 2))]))
        }

        async fn sunk(&self, sink: ::antiphon::Sink) -> ::std::result::Result<(), Failure> {
            sink.accept();
            Fine(())
        }
    }

    impl Mall for super::Service {}
}

#[tokio::test]
async fn a_contract_needs_no_prelude() {
    let client = Client::in_process(shadowed::Mall::into_router(Service));
    assert_eq!(client.call::<u32>("shop_price", ()).await.unwrap(), 307);
    let own = json!({"context": 1, "s": 2});
    assert_eq!(client.call::<u32>("shop_own", own).await.unwrap(), 3);
    let shop = shadowed::MallClient::new(client).shop();
    assert_eq!(shop.whole(vec![1, 2]).await.unwrap(), 2);
    let error = shop.blocking().await.unwrap_err();
    assert_eq!(error.as_error(), Some(shadowed::Failure::One { r#type: 5 }));
    let mut tries = shop.tries().await.unwrap();
    let error = tries.try_next().await.unwrap_err();
    assert_eq!(error.as_error(), Some(shadowed::Failure::Two(1, 2)));
}

#[tokio::test]
async fn a_contract_can_be_inside_a_function() {
    #[antiphon::rpc(namespace = "inner")]
    trait Inner {
        fn one(&self) -> Result<u32, ErrorObject> {
            Ok(1)
        }
    }

    #[antiphon::rpc(namespace = "outer", extends(Inner))]
    trait Outer: Inner {}

    struct Local;
    impl Inner for Local {}
    impl Outer for Local {}

    assert_eq!(OuterClient::in_process(Local).inner().one().await.unwrap(), 1);
}

macro_rules! contract {
    ($name:ident, $param:ty, $answer:ty, $context:ty, $default:expr, $failure:ident, $case:ident) => {
        #[derive(Debug, PartialEq, antiphon::RpcError)]
        enum $failure {
            #[rpc(code = 1)]
            $case($param),
            #[rpc(code = 2, message = "two")]
            Named { value: $param },
        }

        #[antiphon::rpc]
        trait $name {
            fn sum(
                &self,
                cx: $context,
                one: $param,
                #[param(default = $default)] two: u32,
            ) -> $answer;
        }
    };
}

contract!(Declared, Option<u32>, Result<u32, ErrorObject>, antiphon::Context, 1 + 1, Failed, Case);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl Declared for Service {
    fn sum(&self, _cx: antiphon::Context, one: Option<u32>, two: u32) -> Result<u32, ErrorObject> {
        Ok(one.unwrap_or(9) + two)
    }
}

#[tokio::test]
async fn a_macro_can_declare_a_contract() {
    let client = Client::in_process(Declared::into_router(Service));
    assert_eq!(client.call::<u32>("sum", Value::Array(Vec::new())).await.unwrap(), 11);
    assert_eq!(DeclaredClient::new(client).sum(None, 1).await.unwrap(), 10);
    for failed in [Failed::Case(Some(1)), Failed::Named { value: None }] {
        let error = antiphon::CallError::Rpc(match &failed {
            Failed::Case(one) => Failed::Case(*one).into(),
            Failed::Named { value } => Failed::Named { value: *value }.into(),
        });
        assert_eq!(error.as_error(), Some(failed));
    }
}
