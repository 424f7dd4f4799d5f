//! Session logs of DeepSeek Harness as a model: what a session did, the events that the host would write for it, and the
//! bytes of its file, packed or not, in batches of any size. With [`Fault`]s: logs that break one rule of the lifecycle.
//!
//! Everything that [`events`] gives without a fault is sound, and so is every prefix of it, apart from what is open then.

mod build;
mod faults;
mod model;
mod render;
mod strategy;
mod turns;

pub use build::{Built, Places, build, events, places};
pub use faults::Fault;
pub use model::{Answer, Between, Call, Session, Step, Turn, TurnEnd};
pub use render::{Encoding, Header, Layout, file, frames, header, row, rows};
pub use strategy::{layouts, sessions};
