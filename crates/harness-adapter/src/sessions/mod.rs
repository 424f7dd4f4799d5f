//! Session logs of harnesses, read straight from their own files.

mod child;
pub mod claude;
pub mod codex;
mod door;
pub mod dsh;
mod fields;
pub mod gemini;
mod lines;
mod turn_keys;

pub use door::{Door, DoorError, Talked, TurnSeen};
pub use turn_keys::{TurnKey, turn_keys};
