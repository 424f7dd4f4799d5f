//! The built binary, from outside: an empty home, no configuration, a data directory of its own.
#![allow(clippy::disallowed_methods, reason = "tests write files and run the program")]

mod agents;
mod codes;
mod config;
mod inputs;
mod output;
mod recovery;
mod sandbox;
mod schema;
mod stories;
