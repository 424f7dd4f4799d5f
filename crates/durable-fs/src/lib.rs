//! Durable replace, no-follow opens, advisory locks and file-system facts. No policy: a leaf that knows nothing of
//! checkpoints.
//!
//! Functions that take a path fail with [`Error`], which names it. The methods of [`Dir`] work on names below an open
//! descriptor and fail with a plain [`std::io::Error`]: only their caller knows which path it was about.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use durable_fs::{Access, Durability, FileLock, LockMode, create_private_dirs, replace};
//!
//! let scratch = tempfile::tempdir()?;
//! let data = scratch.path().join("a/b");
//! create_private_dirs(&data)?;
//! let held = FileLock::acquire(&data.join("lock"), LockMode::Exclusive, Duration::ZERO)?;
//! replace(&data.join("epoch"), b"1", Access::Private, Durability::Synced)?;
//! drop(held);
//! # Ok(()) }
//! ```

mod dir;
mod error;
mod facts;
mod lock;
mod open;
mod process;
mod replace;
mod stat;
mod swap;
mod xattr;

pub use dir::{Descent, Dir, Mounts};
pub use error::Error;
pub use facts::{FsFacts, Identity, free_bytes, fs_facts, identity, mount_id};
pub use lock::{FileLock, LockFailure, LockMode, OpenLock};
pub use open::{open_regular, read_regular};
pub use process::{Process, boot_id, parent_and_name};
pub use replace::{Access, Durability, create_private_dirs, replace, sync_dir};
pub use stat::{Kind, Stat};
pub use swap::replace_if;
pub use xattr::{Attribute, read_attributes, remove_attribute, write_attribute};
