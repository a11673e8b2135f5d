//! The crate `corepc-client` with the types of Bitcoin Core 28, which states version 2.0.

use corepc_client::bitcoin::Amount;
use corepc_client::client_sync::v28::Client;
use corepc_client::client_sync::{Auth, Error};
use interop_bitcoin::{Answers, GENESIS, ToyNode};

use crate::Cookie;

fn client(url: &str) -> Client {
    let auth = Auth::UserPass(ToyNode::USER.to_owned(), ToyNode::PASSWORD.to_owned());
    Client::new_with_auth(url, auth).expect("the URL is valid")
}

/// The code of the error response. The crate does not export the type that holds it.
#[track_caller]
fn has_code<T: std::fmt::Debug>(outcome: Result<T, Error>, code: i32) -> bool {
    let Err(Error::JsonRpc(error)) = outcome else { panic!("no error response: {outcome:?}") };
    format!("{error:?}").starts_with(&format!("Rpc(RpcError {{ code: {code},"))
}

#[test]
fn typed_calls() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let client = client(&node.url());
        assert_eq!(client.get_block_count().unwrap().0, 0, "{answers:?}");
        assert_eq!(client.get_block_hash(0).unwrap().0, GENESIS);
        let balance = client.get_balance().unwrap().into_model().unwrap().0;
        assert_eq!(balance, Amount::from_sat(2_099_999_997_690_000));
        let chain = client.get_blockchain_info().unwrap();
        assert_eq!((&*chain.chain, chain.blocks, chain.size_on_disk), ("regtest", 0, 293));
        assert_eq!(chain.best_block_hash, GENESIS);
    }
}

#[test]
fn errors() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let client = client(&node.url());
        assert!(has_code(client.get_block_hash(7), -8), "{answers:?}");
        assert!(has_code(client.call::<bool>("unknown", &[]), -32601));
    }
}

#[test]
fn wallets() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let savings = client(&node.wallet("savings")).get_balance().unwrap().balance().unwrap();
        assert_eq!(savings, Amount::from_sat(150_000_000), "{answers:?}");
        assert!(has_code(client(&node.wallet("none")).get_balance(), -18));
    }
}

#[test]
fn authentication() {
    let node = ToyNode::start(Answers::ByCall);
    let wrong = Auth::UserPass(ToyNode::USER.to_owned(), "wrong".to_owned());
    let refused = Client::new_with_auth(&node.url(), wrong).unwrap().get_block_count().unwrap_err();
    assert!(format!("{refused:?}").contains("401"), "{refused:?}");
    let refused = Client::new(&node.url()).get_block_count().unwrap_err();
    assert!(format!("{refused:?}").contains("401"), "{refused:?}");
    let cookie = Cookie::write("corepc-client");
    let auth = Auth::CookieFile(cookie.path().to_owned());
    assert_eq!(Client::new_with_auth(&node.url(), auth).unwrap().get_block_count().unwrap().0, 0);
}
