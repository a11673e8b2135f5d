use antiphon::ErrorObject;

#[antiphon::rpc]
pub trait Cards {
    async fn count(&self) -> Result<u32, ErrorObject>;
}

#[antiphon::rpc]
pub trait Board: Send + Cards + std::fmt::Debug {}

#[antiphon::rpc(extends(Cards))]
pub trait Taken {
    async fn cards(&self) -> Result<u32, ErrorObject>;
}

pub mod other {
    use antiphon::ErrorObject;

    #[antiphon::rpc]
    pub trait Cards {
        async fn count(&self) -> Result<u32, ErrorObject>;
    }

    pub trait Debug {}
}

#[antiphon::rpc(extends(Cards))]
pub trait Namesake: other::Cards + self::Cards {}

#[antiphon::rpc]
pub trait NotPlain: other::Debug {}

#[antiphon::rpc(extends(Cards, other::Cards))]
pub trait Both {}

#[antiphon::rpc(extends(Cards, self::Cards))]
pub trait Twice {}

#[antiphon::rpc]
pub trait New {}

#[antiphon::rpc]
pub trait InProcess {}

#[antiphon::rpc]
pub trait Super {}

#[antiphon::rpc]
pub trait Match {}

#[antiphon::rpc(extends(New, InProcess, Super))]
pub trait Reserved {}

#[antiphon::rpc(extends(Match))]
pub trait Keyword {
    async fn r#match(&self) -> Result<u32, ErrorObject>;
}

/// Without a client, there are no functions with these names.
#[antiphon::rpc(server, extends(Cards, other::Cards, New, Super))]
pub trait NoClient {
    async fn cards(&self) -> Result<u32, ErrorObject>;
}

struct Service;

impl Cards for Service {
    async fn count(&self) -> Result<u32, ErrorObject> {
        Ok(1)
    }
}

impl other::Cards for Service {
    async fn count(&self) -> Result<u32, ErrorObject> {
        Ok(2)
    }
}

impl Both for Service {}

fn main() {
    let both = BothClient::in_process(Service);
    drop(both.cards().count());
    drop(Both::into_router(Service));
}
