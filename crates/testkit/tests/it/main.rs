//! The engine composed from the real crates, on real directories.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make and read files directly")]

mod crash;
mod fork;
mod history;
mod kept;
mod machine;
mod scan;
mod tracer;
mod transaction;
mod world;
