//! Session logs, against what the real host wrote and said.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make and read files directly")]

mod clients;
mod corpus;
mod damage;
mod forged;
mod fork;
mod generated;
mod generated_forks;
mod lifecycle;
mod made;
mod real;
mod repair;
mod vectors;
mod world;
