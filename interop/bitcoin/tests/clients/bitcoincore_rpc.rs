//! The crate `bitcoincore-rpc`, which states version 2.0 and reads both shapes.

use bitcoincore_rpc::bitcoin::{Amount, Network};
use bitcoincore_rpc::jsonrpc::error::Error as JsonRpcError;
use bitcoincore_rpc::{Auth, Client, Error, RpcApi as _};
use interop_bitcoin::{Answers, GENESIS, ToyNode};

use crate::Cookie;

fn client(url: &str) -> Client {
    let auth = Auth::UserPass(ToyNode::USER.to_owned(), ToyNode::PASSWORD.to_owned());
    Client::new(url, auth).expect("the URL is valid")
}

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> i32 {
    match outcome {
        Err(Error::JsonRpc(JsonRpcError::Rpc(error))) => error.code,
        other => panic!("no error response: {other:?}"),
    }
}

#[test]
fn typed_calls() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let client = client(&node.url());
        assert_eq!(client.get_block_count().unwrap(), 0, "{answers:?}");
        assert_eq!(client.get_block_hash(0).unwrap().to_string(), GENESIS);
        let balance = client.get_balance(None, None).unwrap();
        assert_eq!(balance, Amount::from_sat(2_099_999_997_690_000));
        let chain = client.get_blockchain_info().unwrap();
        assert_eq!((chain.chain, chain.blocks, chain.pruned), (Network::Regtest, 0, false));
        assert_eq!(chain.best_block_hash.to_string(), GENESIS);
    }
}

#[test]
fn errors() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let client = client(&node.url());
        assert_eq!(code(client.get_block_hash(7)), -8, "{answers:?}");
        assert_eq!(code(client.call::<bool>("unknown", &[])), -32601);
    }
}

#[test]
fn wallets() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let savings = client(&node.wallet("savings")).get_balance(None, None).unwrap();
        assert_eq!(savings, Amount::from_sat(150_000_000), "{answers:?}");
        assert_eq!(code(client(&node.wallet("none")).get_balance(None, None)), -18);
    }
}

#[test]
fn authentication() {
    let node = ToyNode::start(Answers::ByCall);
    let wrong = Auth::UserPass(ToyNode::USER.to_owned(), "wrong".to_owned());
    for auth in [wrong, Auth::None] {
        let refused = Client::new(&node.url(), auth).unwrap().get_block_count().unwrap_err();
        assert!(format!("{refused:?}").contains("401"), "{refused:?}");
    }
    let cookie = Cookie::write("bitcoincore-rpc");
    let auth = Auth::CookieFile(cookie.path().to_owned());
    assert_eq!(Client::new(&node.url(), auth).unwrap().get_block_count().unwrap(), 0);
}

#[test]
fn a_batch() {
    for answers in Answers::ALL {
        let node = ToyNode::start(answers);
        let client = client(&node.url());
        let rpc = client.get_jsonrpc_client();
        let calls = [rpc.build_request("getblockcount", None), rpc.build_request("unknown", None)];
        let outcomes = rpc.send_batch(&calls).unwrap().into_iter().map(|reply| {
            let reply = reply.expect("each call has a response");
            reply.result::<u64>().map_err(Error::from)
        });
        let [Ok(0), unknown] = <[_; 2]>::try_from(outcomes.collect::<Vec<_>>()).unwrap() else {
            panic!("{answers:?}: no block count")
        };
        assert_eq!(code(unknown), -32601);
    }
}
