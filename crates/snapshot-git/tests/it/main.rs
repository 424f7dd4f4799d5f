//! Integration tests: captures of real workspaces, compared with git where it is installed.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests make the worlds they need")]

mod capture_basics;
mod capture_cache;
mod capture_cover;
mod capture_git;
mod capture_limits;
mod capture_random;
mod capture_restored;
mod capture_rules;
mod capture_watched;
mod seed;
mod world;
