//! Counts what differs between the index and the work tree of the repository around the current directory, files that
//! git does not know included: `gix-status`. Renames and submodules are not looked at, two threads do the work.

use gix::status::UntrackedFiles;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repo = gix::open(".")?;
    let status = repo
        .status(gix::progress::Discard)?
        .untracked_files(UntrackedFiles::Files)
        .index_worktree_rewrites(None)
        .index_worktree_submodules(None)
        .index_worktree_options_mut(|options| options.thread_limit = Some(2));
    let mut changes = 0_u64;
    for change in status.into_index_worktree_iter(Vec::new())? {
        change?;
        changes += 1;
    }
    println!("{changes}");
    Ok(())
}
