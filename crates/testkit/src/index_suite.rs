//! What every [`IndexStore`] must do, as one suite that any implementation can run.

pub mod build;
mod checks;
mod faults;
mod histories;
mod intervals;
mod queries;
mod tables;
mod transactions;

use checkpoint_core::IndexStore;

pub use faults::{ApplyFaults, Fault, FaultyIndex};

/// Opens another handle on one and the same index.
pub type Open = Box<dyn Fn() -> Box<dyn IndexStore> + Send + Sync>;

/// Runs the whole suite.
///
/// `fresh` makes a new, empty index and gives what opens handles on it; it stays until that is dropped. `model` makes
/// a new, empty index that is trusted: random histories must read the same from both.
///
/// # Panics
///
/// Where the index breaks the contract.
pub fn run(fresh: &dyn Fn() -> Open, model: &dyn Fn() -> Box<dyn IndexStore>) {
    for (name, check) in checks::ALL {
        let open = fresh();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&open)));
        if let Err(cause) = outcome {
            let why = cause
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| cause.downcast_ref::<&str>().map(ToString::to_string));
            panic!("{name}: {}", why.unwrap_or_default());
        }
    }
    histories::read_the_same(fresh, model);
    histories::no_drop_launders(fresh);
}
