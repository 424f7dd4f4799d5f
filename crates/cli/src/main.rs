//! The program `rwd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rwd::run(rwd::World { own_process: true, ..rwd::World::of_process() }))
}
