//! Integration tests: captures of real workspaces, compared with git where it is installed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod capture_basics;
mod capture_cache;
mod capture_cover;
mod capture_git;
mod capture_limits;
mod capture_rules;
mod world;
