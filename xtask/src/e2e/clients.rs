//! The TypeScript client of the sidecar against the program, on the Node.js of the hosts.

use std::path::Path;

use super::install::Node;
use crate::{Result, repo};

/// Runs the client's own tests.
pub(super) fn run(rwd: &Path) -> Result {
    let node = Node::install()?;
    let dir = repo::root().join("clients/typescript");
    let mut tests = node.command("node")?;
    tests.args(["--test", "test/client.test.ts"]).current_dir(dir).env("RWD_BIN", rwd);
    if tests.status()?.success() { Ok(()) } else { Err("the tests of the TypeScript client fail".into()) }
}
