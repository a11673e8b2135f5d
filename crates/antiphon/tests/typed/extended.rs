//! Contracts that extend other contracts, and supertraits that are no contracts.

use std::fmt::Debug;
use std::sync::Arc;

use antiphon::ErrorObject;

mod people {
    #[antiphon::rpc(namespace = "people")]
    pub(crate) trait PhoneBook {
        async fn lookup(&self, name: String) -> Result<u32, antiphon::ErrorObject>;
    }
}

use people::PhoneBook as _;

#[antiphon::rpc(namespace = "cards")]
trait Cards {
    fn count(&self) -> Result<usize, ErrorObject>;
}

/// A trait that is no contract.
trait Named {
    fn name(&self) -> String;
}

#[antiphon::rpc(namespace = "board", extends(Cards, people::PhoneBook))]
trait Board: Debug + Cards
where
    Self: Named,
{
    async fn title(&self) -> Result<String, ErrorObject> {
        Ok(self.name())
    }
}

#[derive(Debug)]
struct Kanban;

impl Named for Kanban {
    fn name(&self) -> String {
        "kanban".to_owned()
    }
}

impl Named for Arc<Kanban> {
    fn name(&self) -> String {
        "shared".to_owned()
    }
}

impl Cards for Kanban {
    fn count(&self) -> Result<usize, ErrorObject> {
        Ok(3)
    }
}

impl people::PhoneBook for Kanban {
    async fn lookup(&self, name: String) -> Result<u32, ErrorObject> {
        Ok(u32::try_from(name.len()).unwrap())
    }
}

impl Board for Kanban {}

#[tokio::test]
async fn an_extended_contract_is_served_and_called() {
    for board in [BoardClient::in_process(Kanban), BoardClient::in_process(Arc::new(Kanban))] {
        assert_eq!(board.title().await.unwrap(), "kanban");
        assert_eq!(board.cards().count().await.unwrap(), 3);
        assert_eq!(board.phone_book().lookup("ada".to_owned()).await.unwrap(), 3);
    }
    let router = Board::into_router(Kanban);
    let mut names: Vec<_> = router.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["board_title", "cards_count", "people_lookup"]);
    assert_eq!(Kanban.lookup("bob".to_owned()).await.unwrap(), 3);
}

#[antiphon::rpc(namespace = "left", extends(Cards))]
trait Left {
    fn left(&self) -> Result<u8, ErrorObject> {
        Ok(1)
    }
}

#[antiphon::rpc(namespace = "right", extends(Cards))]
trait Right {
    fn right(&self) -> Result<u8, ErrorObject> {
        Ok(2)
    }
}

#[antiphon::rpc(namespace = "top", extends(Left, Right))]
trait Top {
    fn top(&self) -> Result<u8, ErrorObject> {
        Ok(3)
    }
}

impl Left for Kanban {}
impl Right for Kanban {}
impl Top for Kanban {}

/// Both extended contracts extend the same one.
#[tokio::test]
async fn a_contract_that_is_extended_twice_is_served_once() {
    let router = Top::into_router(Kanban);
    let mut names: Vec<_> = router.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["cards_count", "left_left", "right_right", "top_top"]);
    let top = TopClient::in_process(Kanban);
    assert_eq!(top.left().left().await.unwrap() + top.right().right().await.unwrap(), 3);
    assert_eq!(top.left().cards().count().await.unwrap(), 3);
    assert_eq!(top.right().cards().count().await.unwrap(), 3);
}
