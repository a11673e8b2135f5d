use antiphon::ErrorObject;
use std::borrow::Cow;

pub struct Foo<'a>(&'a str);

#[antiphon::rpc]
pub trait Names {
    async fn text(&self, name: &str) -> Result<i64, ErrorObject>;
    async fn optional(&self, name: Option<&str>) -> Result<i64, ErrorObject>;
    async fn undeclared(&self, name: Cow<'a, str>) -> Result<i64, ErrorObject>;
    async fn declared<'a>(&self, name: Cow<'a, str>) -> Result<i64, ErrorObject>;
    async fn elided(&self, name: Foo<'_>) -> Result<i64, ErrorObject>;
    async fn hidden(&self, name: Cow<str>) -> Result<i64, ErrorObject>;
    async fn owned(&self, name: Cow<'static, str>) -> Result<i64, ErrorObject>;
    async fn returned(&self) -> Result<&str, ErrorObject>;
    async fn listed(&self) -> Result<Vec<Cow<'_, str>>, ErrorObject>;
}

struct Service;

impl Names for Service {
    async fn text(&self, _name: &str) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn optional(&self, _name: Option<&str>) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn undeclared(&self, _name: Cow<'_, str>) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn declared<'a>(&self, _name: Cow<'a, str>) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn elided(&self, name: Foo<'_>) -> Result<i64, ErrorObject> {
        Ok(name.0.len() as i64)
    }
    async fn hidden(&self, _name: Cow<'_, str>) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn owned(&self, _name: Cow<'static, str>) -> Result<i64, ErrorObject> {
        Ok(1)
    }
    async fn returned(&self) -> Result<&str, ErrorObject> {
        Ok("name")
    }
    async fn listed(&self) -> Result<Vec<Cow<'_, str>>, ErrorObject> {
        Ok(Vec::new())
    }
}

#[antiphon::rpc]
pub trait Scoped<'a> {
    async fn scoped(&self, name: Cow<'a, str>) -> Result<i64, ErrorObject>;
}

fn main() {
    let names = NamesClient::in_process(Service);
    drop((names.text("a"), names.returned()));
}
