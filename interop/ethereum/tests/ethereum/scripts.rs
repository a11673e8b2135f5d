//! viem, ethers and web3.py: each script asserts what its library returns.

use std::path::Path;

use tokio::process::Command;

use crate::support::{ToyNode, part, within};

/// Runs a script with the endpoints of a toy node.
async fn passes(program: impl AsRef<Path>, script: &str) {
    let node = ToyNode::start().await;
    let mut command = Command::new(program.as_ref());
    command.arg(part(script)).args([&node.http, &node.ws]).arg(&node.ipc).kill_on_drop(true);
    let output = within(command.output()).await.expect("the program runs; see interop/setup");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn viem_and_ethers_use_the_toy_node() {
    part("node_modules/viem");
    part("node_modules/ethers");
    passes("node", "ethereum_client.mjs").await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn web3_py_uses_the_toy_node() {
    passes(part(".venv/bin/python"), "ethereum_client.py").await;
}
