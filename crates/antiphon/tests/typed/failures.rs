//! Errors of a contract, to the wire and back.

use antiphon::{
    CallError, Code, ErrorObject, FromErrorObject, IntoErrorObject, KnownError, RpcError,
};

use crate::library::{Book, LibraryClient, LibraryError, WIRES, serve, shelves};

#[tokio::test]
#[expect(deprecated, reason = "a deprecated method is deprecated in the client too")]
async fn an_error_is_converted_back_by_the_caller() {
    for wire in WIRES {
        let (router, _told) = shelves();
        let library = LibraryClient::new(&serve(wire, router).await);
        let lend = async |title: &str| {
            let error = library.lend(Book { title: title.to_owned(), pages: 1 }).await.unwrap_err();
            (error.to_string(), error.as_error::<LibraryError>())
        };
        let (text, lent) = lend("Emma").await;
        assert_eq!(text, r#"Emma is lent until 7 (-32051): {"title":"Emma","until":7}"#);
        assert_eq!(lent, Some(LibraryError::Lent { title: "Emma".to_owned(), until: 7 }));
        let (text, shelf) = lend("Ulysses").await;
        assert_eq!(text, r#"no such shelf (-32052): "J""#);
        assert_eq!(shelf, Some(LibraryError::Shelf("J".to_owned())));
        let error = library.subtract(i64::MIN, 1).await.unwrap_err();
        assert_eq!(error.as_error(), Some(LibraryError::Overflow));
    }
}

#[test]
fn an_unknown_error_is_not_converted() {
    let none = |error: ErrorObject| {
        assert_eq!(CallError::Rpc(error).as_error::<LibraryError>(), None);
    };
    none(ErrorObject::internal_error());
    none(ErrorObject::new(-32051, "without data"));
    none(ErrorObject::new(-32052, "data of another kind").with_data(&1));
    assert_eq!(CallError::CannotCallBack("http").as_error::<LibraryError>(), None);
}

/// Not `Deserialize`, so the caller cannot convert it back.
#[derive(Debug, PartialEq, serde::Serialize)]
pub struct WriteOnly(u8);

#[derive(Debug, PartialEq, RpcError)]
pub enum Rich {
    #[rpc(code = 1, message = "pair")]
    Pair(u8, String),
    #[rpc(code = 2, message = "skipped")]
    Skipped {
        #[rpc(name = "shownAs")]
        shown: u8,
        #[rpc(skip)]
        secret: String,
    },
    #[rpc(code = 3, message = "kept", no_data)]
    Kept(std::time::Duration),
    #[rpc(code = 4, message = "write only")]
    WriteOnly { inner: WriteOnly },
    #[rpc(code = 5, message = "maybe")]
    Maybe { what: Option<u8> },
    #[rpc(transparent)]
    Library(LibraryError),
    /// What was wrong with it.
    #[rpc(code = -32602, message = "Invalid params")]
    Params,
}

#[derive(Debug, PartialEq, RpcError)]
#[rpc(code = 7, message = "a struct")]
pub struct Single {
    value: u8,
}

#[test]
fn fields_become_data() {
    let text = |error: Rich| error.into_error_object().to_string();
    assert_eq!(text(Rich::Pair(1, "a".to_owned())), r#"pair (1): [1,"a"]"#);
    let skipped = Rich::Skipped { shown: 1, secret: "s".to_owned() };
    assert_eq!(text(skipped), r#"skipped (2): {"shownAs":1}"#);
    assert_eq!(text(Rich::Kept(std::time::Duration::ZERO)), "kept (3)");
    assert_eq!(text(Rich::WriteOnly { inner: WriteOnly(9) }), r#"write only (4): {"inner":9}"#);
    assert_eq!(text(Rich::Library(LibraryError::Overflow)), "the result is out of range (-32050)");
    assert_eq!(Single { value: 1 }.into_error_object().to_string(), r#"a struct (7): {"value":1}"#);
}

#[test]
fn deserializable_fields_are_converted_back() {
    let back = |error: Rich| Rich::from_error_object(&error.into_error_object());
    for error in [
        || Rich::Pair(1, "a".to_owned()),
        || Rich::Maybe { what: None },
        || Rich::Maybe { what: Some(1) },
        || Rich::Library(LibraryError::Shelf("J".to_owned())),
        || Rich::Params,
    ] {
        assert_eq!(back(error()), Some(error()));
    }
    assert_eq!(back(Rich::WriteOnly { inner: WriteOnly(9) }), None);
    assert_eq!(back(Rich::Kept(std::time::Duration::ZERO)), None);
    assert_eq!(back(Rich::Skipped { shown: 1, secret: String::new() }), None);
    let single = Single { value: 1 }.into_error_object();
    assert_eq!(Single::from_error_object(&single), Some(Single { value: 1 }));
}

#[test]
fn known_errors_lists_all_cases() {
    let known = Rich::known_errors();
    let of = |code: i64| known.iter().find(|error| error.code == Code(code)).unwrap();
    assert_eq!(known.len(), 9);
    assert_eq!(of(-32052).message, "no such shelf");
    assert_eq!(*of(1), KnownError { code: Code(1), message: "pair".into() });
    assert!(ErrorObject::known_errors().is_empty());
}

#[tokio::test]
async fn an_error_converts_with_a_question_mark_in_a_closure() {
    use antiphon::{Context, Responder, Router};
    let router = Router::new().method("lend", |(): (), _cx: Context| async {
        Err::<(), _>(LibraryError::Overflow)?;
        Ok(())
    });
    let answer = Responder::new(router).answer(r#"{"jsonrpc":"2.0","method":"lend","id":1}"#).await;
    assert!(std::str::from_utf8(&answer.unwrap()).unwrap().contains("-32050"));
}
