//! Types, traits, pure planning and the engine of rwd. No I/O, no clock, no protocol.
//!
//! An [`Engine`] is composed from a snapshot backend, an index, the user's files, a lock, a clock and a source of ids
//! ([`Required`]), and optionally from session logs, an approver, an observer. Everything else here is plain data and
//! pure functions: addresses, plans, histories, retention.
//!
//! ```
//! use checkpoint_core::{Address, Form, RelPath, Turn};
//!
//! assert_eq!(Address::parse("t7^")?.form, Form::TurnStart(Turn(7)));
//! assert!(RelPath::new("../etc/passwd").is_err());
//! # Ok::<(), checkpoint_core::AddressError>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing))]

mod address;
mod answer;
mod closers;
mod engine;
mod error;
pub mod fold;
mod history;
mod ids;
mod index;
mod json_text;
mod log_event;
mod log_map;
mod object;
pub mod parallel;
mod path;
mod plan;
mod policy;
mod record;
mod retention;
mod seams;
mod session;
mod snapshot;
mod state;
mod workspace;

pub use address::*;
pub use answer::*;
pub use closers::*;
pub use engine::*;
pub use error::*;
pub use history::*;
pub use ids::*;
pub use index::*;
pub use json_text::*;
pub use log_event::*;
pub use log_map::*;
pub use object::*;
pub use path::*;
pub use plan::*;
pub use policy::*;
pub use record::*;
pub use retention::*;
pub use seams::*;
pub use session::*;
pub use snapshot::*;
pub use state::*;
pub use workspace::*;

/// A cause of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
