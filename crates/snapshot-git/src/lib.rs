//! Workspace snapshots in a private git object store: walk, change-detection cache, packs.
#![allow(dead_code, reason = "being built")]

mod meta;
mod read;
mod store;
