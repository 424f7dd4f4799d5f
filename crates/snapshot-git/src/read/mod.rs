//! Questions about stored snapshots, and care for the store that holds them. Nothing here looks at a workspace.

mod consolidate;
mod diff;
mod gc;
mod list;
mod node;
mod purge;
mod state;
mod usage;
mod verify;

pub(crate) use self::{
    consolidate::{consolidate, is_scattered},
    diff::diff,
    gc::gc,
    list::{list, skipped},
    purge::{find, without},
    state::{Descent, state},
    usage::usage,
    verify::{check_blob, verify, verify_all},
};
pub(crate) use node::{is_deepest, root_meta};

#[cfg(test)]
mod tests;
