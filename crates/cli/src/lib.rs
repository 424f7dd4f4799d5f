//! The command line of rwd, as a library: an integrator adds session logs of a harness and keeps every command.
//!
//! ```
//! let mut world = rwd::World::of_process();
//! world.args = ["rwd", "--version"].map(Into::into).to_vec();
//! assert_eq!(rwd::run(world), rwd::exit::OK);
//! ```

mod approve;
mod args;
mod compose;
mod config;
mod demo;
mod error;
pub mod exit;
mod install;
mod lasting;
mod output;
mod paths;
mod run;
mod signals;
mod text;
mod verbs;
mod wire;
mod world;

pub use args::cli_command;
pub use wire::{schemas, sidecar_schemas};
pub use world::World;

/// Runs one command line to its end; errors are told on its streams. Gives the exit code.
pub fn run(world: World) -> u8 {
    run::run(world)
}
