//! Code that uses contracts with parameters, associated items and modifiers: no error is about the use.

use antiphon::{CallError, Client, ErrorObject, Router};
use std::borrow::Cow;
use std::sync::Arc;

#[antiphon::rpc]
pub trait Scoped<'a> {
    async fn scoped(&self, name: Cow<'a, str>) -> Result<i64, ErrorObject>;
}

#[antiphon::rpc]
pub trait Store {
    type Item: Clone + Send + 'static;
    const SIZE: usize;
    async fn get(&self, key: Self::Item) -> Result<Self::Item, ErrorObject>;
    fn size(&self) -> Result<usize, ErrorObject> {
        Ok(Self::SIZE)
    }
}

#[antiphon::rpc]
pub trait Typed<T: Send + 'static, const N: usize> {
    async fn first(&self, value: T) -> Result<[T; N], ErrorObject>;
}

#[antiphon::rpc(extends(Store, Typed))]
pub trait Board {
    async fn title(&self) -> Result<String, ErrorObject>;
}

#[antiphon::rpc]
pub trait Modified {
    unsafe fn dangerous(&self) -> Result<i64, ErrorObject>;
    extern "C" fn foreign(&self) -> Result<i64, ErrorObject>;
    fn bounded(&self) -> Result<i64, ErrorObject>
    where
        Self: Sized;
    async fn borrowed<'a>(&'a self, name: &'a str) -> Result<&'a str, ErrorObject>;
}

#[antiphon::rpc]
pub unsafe trait Promise {}

struct Service;

impl<'a> Scoped<'a> for Service {
    async fn scoped(&self, name: Cow<'a, str>) -> Result<i64, ErrorObject> {
        Ok(name.len() as i64)
    }
}

impl Store for Service {
    type Item = String;
    const SIZE: usize = 3;
    async fn get(&self, key: String) -> Result<String, ErrorObject> {
        Ok(key)
    }
}

impl Typed<u32, 1> for Service {
    async fn first(&self, value: u32) -> Result<[u32; 1], ErrorObject> {
        Ok([value])
    }
}

impl Board for Service {
    async fn title(&self) -> Result<String, ErrorObject> {
        Ok(self.get("title".to_owned()).await?)
    }
}

impl Modified for Service {
    unsafe fn dangerous(&self) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    extern "C" fn foreign(&self) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    fn bounded(&self) -> Result<i64, ErrorObject>
    where
        Self: Sized,
    {
        Ok(1)
    }
    async fn borrowed<'a>(&'a self, name: &'a str) -> Result<&'a str, ErrorObject> {
        Ok(name)
    }
}

unsafe impl Promise for Service {}

struct App {
    store: StoreClient,
    scoped: ScopedClient,
}

async fn calls(client: &Client) -> Result<usize, CallError> {
    let app = App { store: StoreClient::new(client), scoped: ScopedClient::new(client) };
    let key: String = app.store.get("key".to_owned()).await?;
    let scoped: i64 = app.scoped.scoped("name".into()).await?;
    let board = BoardClient::new(client);
    // Slices have methods with these names.
    let first = board.typed().first(1).await?;
    let got = board.store().get(String::new()).await?.len();
    let text: String = ModifiedClient::new(client).borrowed("a").await?;
    Ok(key.len() + scoped as usize + first.len() + got + text.len())
}

fn served<S: Store<Item = String>>(store: S) -> Router {
    store.into_router()
}

fn main() {
    let router = Board::into_router(Service).merge(served(Service));
    let router = router.merge(Scoped::into_router(Arc::new(Service)));
    let router = router.merge(Typed::<u32, 1>::into_router(Service));
    let router = router.merge(Promise::into_router(Arc::new(Service)));
    drop((calls(&Client::in_process(router)), <Service as Store>::SIZE));
}
