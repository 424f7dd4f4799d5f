//! Integration tests: captures of real workspaces, compared with git where it is installed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod capture_basics;
mod world;
