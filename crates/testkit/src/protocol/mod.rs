//! Models of the rewind protocol, searched to exhaustion (design §§ 4, 7).
//!
//! Each model is a small state machine with one switch for each rule that keeps it safe. With every rule on, no state
//! that can be reached is a fault; with a rule off, a fault comes back, which shows that the rule is needed and that
//! the model would see it. The traces are tests on the real engine too: `docs/reliability.md` has the table.

pub mod apply;
pub mod cache;
pub mod evidence;
pub mod fork;
pub mod history;
pub mod locks;
mod search;
pub mod store;

pub use search::{Explored, Model, Step, explore, find};
