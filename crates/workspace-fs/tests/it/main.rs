//! Integration tests of `workspace-fs`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests make the worlds they need and fail by panicking"
)]

mod ahead;
mod crash;
mod guards;
mod kinds;
mod metadata;
mod scratch;
mod suite;
mod traces;
