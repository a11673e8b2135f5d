//! A toy Bitcoin node, which the clients of other projects call.

fn main() {}
