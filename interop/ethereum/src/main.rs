//! A toy Ethereum node, which the clients of other projects call.

fn main() {}
