//! The engine composed from the real crates, on real directories.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make and read files directly")]

mod anchors;
mod crash;
mod folds;
mod fork;
mod growth;
mod history;
mod kept;
mod lineage;
mod machine;
mod matrix;
mod prefix;
mod scan;
mod theme_j;
mod tracer;
mod transaction;
mod world;
