//! Session logs, against what the real host wrote and said.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make and read files directly")]

mod forged;
mod real;
mod vectors;
mod world;
