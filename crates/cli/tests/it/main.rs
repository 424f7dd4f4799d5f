//! The built binary, from outside: an empty home, no configuration, a data directory of its own.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests write files, run the program, stop at what is wrong, and tell their totals"
)]

mod agents;
mod asking;
mod codes;
mod config;
mod conversation;
mod corpus;
mod counts;
mod dice;
mod door_attacks;
mod doors;
mod dsh_home;
mod fifos;
mod flips;
mod folds;
mod full_disk;
mod hints;
mod hooks;
mod import;
mod init;
mod inputs;
mod kills;
mod lines;
mod mcp;
mod opencode;
mod output;
mod private;
mod purge;
mod readme;
mod recovery;
mod run;
mod sandbox;
mod schema;
mod seeded;
mod sessions;
mod sidecar;
mod stories;
mod stranger;
mod syscalls;
mod theme_i;
mod turn_view;
