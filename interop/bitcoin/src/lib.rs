//! A toy Bitcoin node, which the clients of other projects call.

use antiphon::layer::Auth;
use antiphon::transport::http::BitcoinPolicy;
use antiphon::{Context, Dialect, ErrorObject, Handler as _, RawJson, Router, Server};
use tokio::runtime::Runtime;

/// The hash of the first block of a test network.
pub const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
/// All coins that are mined so far, as a node writes them.
pub const BALANCE: &str = "20999999.97690000";
/// The balance of the wallet `savings`.
pub const SAVINGS: &str = "1.50000000";

/// The versions of a node's responses.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// Each response has the version of its call, as in Bitcoin Core 28 and later.
    ByCall,
    /// Every response is a 1.0 response, as in earlier versions.
    AlwaysV1,
}

impl Answers {
    pub const ALL: [Self; 2] = [Self::ByCall, Self::AlwaysV1];
}

/// A running node on a free port of the loopback address. It stops when it is dropped.
pub struct ToyNode {
    address: String,
    _runtime: Runtime,
}

impl ToyNode {
    pub const USER: &str = "alice";
    pub const PASSWORD: &str = "pa55word";

    /// Starts a node that knows one user.
    pub fn start(answers: Answers) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let server = runtime.block_on(Server::bind("http://127.0.0.1:0")).expect("a free port");
        let auth = Auth::new().basic(Self::USER, Self::PASSWORD);
        let policy = BitcoinPolicy::new().auth(auth.clone());
        let policy = match answers {
            Answers::ByCall => policy,
            Answers::AlwaysV1 => policy.always_v1(),
        };
        let server = server.dialect(Dialect::bitcoin()).http_policy(policy);
        let address = server.endpoint().authority().expect("an HTTP endpoint").to_string();
        runtime.spawn(server.serve(router().layer(auth)));
        Self { address, _runtime: runtime }
    }

    /// The host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The URL of the node.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a wallet.
    pub fn wallet(&self, name: &str) -> String {
        format!("http://{}/wallet/{name}", self.address)
    }
}

fn router() -> Router {
    Router::new()
        .method("getblockcount", |(): (), _cx: Context| async { Ok(0) })
        .method("getblockhash", |(height,): (u32,), _cx: Context| async move {
            match height {
                0 => Ok(GENESIS),
                _ => Err(ErrorObject::new(-8, "Block height out of range")),
            }
        })
        .method("getbalance", |_: Option<RawJson>, cx: Context| async move { balance(&cx) })
        .method("getblockchaininfo", |(): (), _cx: Context| async {
            RawJson::parse(CHAIN).map_err(ErrorObject::internal)
        })
        .method("getnetworkinfo", |(): (), _cx: Context| async {
            Ok(serde_json::json!({"version": 280_000}))
        })
}

/// The balance of the wallet that the path names, or of the only other one.
fn balance(cx: &Context) -> Result<RawJson, ErrorObject> {
    let wallet = cx.connection().path().and_then(|path| path.strip_prefix("/wallet/"));
    let amount = match wallet {
        None => BALANCE,
        Some("savings") => SAVINGS,
        Some(_) => {
            let message = "Requested wallet does not exist or is not loaded";
            return Err(ErrorObject::new(-18, message));
        }
    };
    RawJson::parse(amount).map_err(ErrorObject::internal)
}

const CHAIN: &str = r#"{
    "chain": "regtest",
    "blocks": 0,
    "headers": 0,
    "bestblockhash": "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
    "difficulty": 4.656542373906925e-10,
    "time": 1296688602,
    "mediantime": 1296688602,
    "verificationprogress": 1,
    "initialblockdownload": true,
    "chainwork": "0000000000000000000000000000000000000000000000000000000000000002",
    "size_on_disk": 293,
    "pruned": false,
    "warnings": []
}"#;
