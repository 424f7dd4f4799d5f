//! Session logs of harnesses, read straight from their own files.

mod child;
pub mod claude;
pub mod codex;
mod door;
pub mod dsh;
mod fields;
pub mod gemini;
mod lines;
pub mod opencode;
mod turn_keys;

pub use door::{ClientLogs, Door, DoorError, Listed, Talked, TurnSeen, written};
pub use turn_keys::{NewestKeys, TurnKey, expected_position, newest_keys, turn_keys};

use std::{path::PathBuf, sync::Arc};

/// The clients whose logs can be read and cut besides DeepSeek Harness, by the names in session keys.
pub const CLIENTS: [&str; 4] = [claude::HARNESS, codex::HARNESS, gemini::HARNESS, opencode::HARNESS];

/// Where a client keeps its logs; `None` without a home, and for a client that is not known. `var` looks up a variable.
pub fn client_home(client: &str, var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    match client {
        claude::HARNESS => claude::default_home(var),
        codex::HARNESS => codex::default_home(var),
        gemini::HARNESS => gemini::default_home(var),
        opencode::HARNESS => opencode::default_home(var),
        _ => None,
    }
}

/// The logs of a client below its home. Nothing is read or run now.
pub fn client_logs(client: &str, home: PathBuf) -> Option<Arc<dyn ClientLogs>> {
    match client {
        claude::HARNESS => Some(Arc::new(claude::open(home))),
        codex::HARNESS => Some(Arc::new(codex::open(home))),
        gemini::HARNESS => Some(Arc::new(gemini::open(home))),
        opencode::HARNESS => Some(Arc::new(opencode::open(home))),
        _ => None,
    }
}
