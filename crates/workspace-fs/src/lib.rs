//! The only code of rwd that writes user files.
//!
//! [`RealWorkspace`] reaches everything by descriptor from the workspace's root and follows no link. A path goes from
//! one state to another in steps that can each be the last one: whatever a crash or somebody else's edit leaves,
//! [`WorkspaceFs::settle`] finds every byte again.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use checkpoint_core::{BlobStore, Change, Mode, OpId, PathState, RelPath, Temporaries, WorkspaceFs};
//! use workspace_fs::RealWorkspace;
//!
//! let scratch = tempfile::tempdir()?;
//! let blobs = testkit::MemoryBlobs::default();
//! let blob = blobs.put_blob(5, &mut b"hello".as_slice())?;
//!
//! let workspace = RealWorkspace::open(scratch.path())?;
//! let path = RelPath::new("greeting")?;
//! let after = PathState::File { blob, mode: Mode(0o640) };
//! let change = Change { path: path.clone(), before: PathState::Absent, after };
//! let temporaries = Temporaries(OpId::from_bytes([7; 16]));
//!
//! workspace.check(&change)?;
//! workspace.apply(&change, &temporaries, 0, &blobs)?;
//! workspace.sync(&[path.clone()])?;
//! assert_eq!(workspace.observe(&path, &blobs)?, after);
//! workspace.apply(&change.inverse(), &temporaries, 1, &blobs)?;
//! assert_eq!(workspace.observe(&path, &blobs)?, PathState::Absent);
//! # Ok(()) }
//! ```

mod apply;
mod check;
mod crash;
mod draft;
mod metadata;
mod place;
mod ready;
mod real;
mod settle;
mod work;

pub use checkpoint_core::WorkspaceFs;
pub use crash::{Crash, NoCrash};
pub use real::{Options, RealWorkspace, Support};
