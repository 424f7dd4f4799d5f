//! Puts the hooks of rwd into the settings of agents, and takes them out again: text in, text out. Nothing here reads or
//! writes a file.
//!
//! What each harness wants was measured with the real programs; `docs/agents/` says what is known of each.

mod codex_trust;
mod command;
mod edit;
mod hooks_file;
mod jsonc;
mod places;
mod scripts;

pub use crate::agent::Agent;
pub use codex_trust::{Trust, TrustEntry, hooks_are_off, trust_state, with_trust, without_trust};
pub use command::{BadBinary, hook_command};
pub use hooks_file::{Installed, Present, Usable, inspect, install, uninstall};
pub use jsonc::Mistake;
pub use places::{Content, Place, Scope, Surroundings, codex_config, detected, places};
pub use scripts::{is_ours as is_our_script, program_of as program_of_script};
