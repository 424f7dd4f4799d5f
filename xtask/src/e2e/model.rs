//! Scripted models on loopback.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use serde_json::Value;

use super::install::Node;
use crate::Result;

/// A model that is a script of Node's, ended with its owner. It says which port it has and writes each request down.
pub(super) struct Model {
    child: Child,
    port: String,
    log: PathBuf,
}

impl Drop for Model {
    fn drop(&mut self) {
        // It has no state worth an orderly end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Model {
    /// `script` gets `log` and then `arguments`.
    pub(super) fn start(node: &Node, script: &Path, log: &Path, arguments: &[&Path]) -> Result<Self> {
        File::create(log)?;
        let mut child = node.command("node")?.arg(script).arg(log).args(arguments).stdout(Stdio::piped()).spawn()?;
        let mut first = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut first)?;
        let port = first.trim().strip_prefix("port ").map(str::to_owned);
        let mut model = Self { child, port: String::new(), log: log.to_owned() };
        model.port = port.ok_or("the scripted model did not start")?;
        Ok(model)
    }

    /// Where it listens on 127.0.0.1.
    pub(super) fn port(&self) -> &str {
        &self.port
    }

    /// Every request about a turn so far: the field `of` each.
    pub(super) fn turns(&self, of: &str) -> Result<Vec<Vec<Value>>> {
        let mut requests = Vec::new();
        for line in fs::read_to_string(&self.log)?.lines() {
            let request: Value = serde_json::from_str(line)?;
            if request["about"] == "failed" {
                return Err(format!("the scripted model failed: {}", request["error"]).into());
            }
            if request["about"] == "turn" {
                requests.push(request[of].as_array().cloned().unwrap_or_default());
            }
        }
        Ok(requests)
    }
}
