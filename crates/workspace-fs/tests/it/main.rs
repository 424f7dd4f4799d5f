//! Integration tests of `workspace-fs`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod guards;
mod kinds;
mod metadata;
mod scratch;
mod suite;
mod traces;
