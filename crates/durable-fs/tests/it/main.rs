//! Integration tests of `durable-fs`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests make the worlds they need and fail by panicking"
)]

mod dir;
mod facts;
mod lock;
mod replace;
