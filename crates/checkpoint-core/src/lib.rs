//! Types, traits, pure planning and the engine of rwd. No I/O, no clock, no protocol.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing))]

mod ids;
mod index;
mod object;
mod path;
mod policy;
mod record;
mod seams;
mod session;
mod snapshot;
mod state;
mod workspace;

pub use ids::*;
pub use index::*;
pub use object::*;
pub use path::*;
pub use policy::*;
pub use record::*;
pub use seams::*;
pub use session::*;
pub use snapshot::*;
pub use state::*;
pub use workspace::*;

/// A cause of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// placeholder
#[derive(Debug)] pub struct Preview;
/// placeholder
#[derive(Debug)] pub struct EngineEvent;
