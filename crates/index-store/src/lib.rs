//! Points, operations and intents in memory, JSON or SQLite.
mod apply;
mod document;
mod durable;
mod format;
mod json;
mod line;
mod memory;
mod query;
mod rows;
mod sqlite;
mod surface;
mod touches;
mod tree;
pub use json::{JsonIndex, JsonOptions};
pub use memory::MemoryIndex;
pub use sqlite::{Journal, SqliteIndex, SqliteOptions};
