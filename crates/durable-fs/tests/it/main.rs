//! Integration tests of `durable-fs`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dir;
mod facts;
mod lock;
mod replace;
