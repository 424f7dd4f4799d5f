//! A process of its own that works on a workspace of the long run until it is killed: this very test program again.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use checkpoint_core::{DriftPolicy, RestorePolicy, RestoreRequest, SaveRequest};

use super::place::{QUOTA, policy};
use crate::world::{Kind, World};

const VARIABLE: &str = "RWD_SOAK_CHILD";

/// What it does, and where.
pub(super) struct Order {
    pub(super) dir: PathBuf,
    pub(super) kind: Kind,
    pub(super) deed: String,
    pub(super) target: String,
    /// How far the simulated clock is ahead.
    pub(super) ahead: i64,
    /// Its ids come after this.
    pub(super) first: u64,
}

/// Starts it and kills it so long after it has opened everything. True when it had ended by itself.
pub(super) fn killed(order: &Order, after: Duration) -> bool {
    let kind = if order.kind == Kind::Json { "json" } else { "sqlite" };
    let said =
        format!("{}\n{kind}\n{}\n{}\n{}\n{}", order.dir.display(), order.deed, order.target, order.ahead, order.first);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["soak::child::a_process_of_the_soak", "--exact", "--ignored", "--nocapture", "--quiet"]);
    let command = command.env(VARIABLE, said).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.is_ok_and(|line| line.ends_with("at work"))), "it did not begin");
    std::thread::sleep(after);
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let status = ended.unwrap_or_else(|| child.wait().unwrap());
    assert!(status.success() || status.code().is_none(), "{}: it failed: {status}", order.deed);
    status.success()
}

#[test]
#[ignore = "the soak starts it"]
fn a_process_of_the_soak() {
    let said = std::env::var(VARIABLE).expect("it is started by the soak");
    let said: Vec<&str> = said.lines().collect();
    let [dir, kind, deed, target, ahead, first] = said[..] else { panic!("{said:?}") };
    let kind = if kind == "json" { Kind::Json } else { Kind::Sqlite };
    let mut world = World::of_another(dir.into(), kind, policy(), first.parse().unwrap());
    world.composed(|files| files, |builder| builder.quota(QUOTA));
    world.clock.turn(ahead.parse().unwrap());
    println!("at work");
    let ended = match deed {
        "save" => world.engine.save(&SaveRequest::manual()).map(drop),
        "gc" => world.engine.gc(false).map(drop),
        _ => {
            let policy =
                RestorePolicy { exact: true, drift: DriftPolicy::Overwrite, with_others: true, ..Default::default() };
            let request =
                RestoreRequest { target: target.to_owned(), policy, force: true, ..RestoreRequest::default() };
            world.engine.restore(&request).map(drop)
        }
    };
    if let Err(error) = ended {
        assert_eq!(error.code(), "blocked", "{error}");
    }
}
