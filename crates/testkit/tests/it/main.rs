//! The engine composed from the real crates, on real directories.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests make and read files directly, and tell their totals"
)]

mod anchors;
mod corpus;
mod crash;
mod disk;
mod flips;
mod folds;
mod fork;
mod growth;
mod history;
mod hostile;
mod kept;
mod lineage;
mod lines;
mod machine;
mod matrix;
mod prefix;
mod protocol;
mod scan;
mod soak;
mod theme_ef;
mod theme_j;
mod tracer;
mod transaction;
mod watched;
mod world;
