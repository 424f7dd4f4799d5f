//! What a model is told of files that were put back under it, and from when on (design §§ 5, 11).

use std::collections::BTreeMap;

use checkpoint_core::{
    IndexError, IndexStore, OpKind, OpState, Operation, Ord, PathState, RelPath, SessionKey, files_notice,
};

/// So many operations are looked at.
const OPERATIONS: usize = 64;

/// Operations that moved files or made a session, oldest first.
fn operations(index: &dyn IndexStore) -> Result<Vec<Operation>, IndexError> {
    let mut operations = index.operations(&[OpKind::Restore, OpKind::Undo, OpKind::Redo], Some(OPERATIONS))?;
    operations.retain(|op| matches!(op.state, OpState::Done | OpState::Partial));
    operations.sort_by_key(|op| op.ord);
    Ok(operations)
}

/// Up to which place a session knows what was done, when it is met for the first time: a child that an operation made
/// knows nothing of that one, any other session sees the files as they are.
pub fn seen_at_first(index: &dyn IndexStore, session: &SessionKey) -> Result<u64, IndexError> {
    let made_by = operations(index)?.into_iter().rev().find(|op| op.child.as_deref() == Some(session.id()));
    Ok(match made_by {
        Some(op) => op.ord.0.saturating_sub(1),
        None => index.newest()?.0,
    })
}

/// What the model has to be told of operations after the place `seen`; `None` where none changed a file.
pub fn since(index: &dyn IndexStore, seen: u64, session: &SessionKey) -> Result<Option<String>, IndexError> {
    let mut net: BTreeMap<RelPath, (PathState, PathState)> = BTreeMap::new();
    let mut child = false;
    for op in operations(index)?.into_iter().filter(|op| op.ord > Ord(seen)) {
        child |= op.child.as_deref() == Some(session.id());
        for written in index.written(&op.id)? {
            net.entry(written.path)
                .and_modify(|(_, after)| *after = written.after)
                .or_insert((written.before, written.after));
        }
    }
    // What was taken back again is as the model knows it.
    net.retain(|_, (before, after)| before != after);
    let restored: Vec<&RelPath> =
        net.iter().filter(|(_, (_, after))| !after.is_absent()).map(|(path, _)| path).collect();
    let removed: Vec<&RelPath> = net.iter().filter(|(_, (_, after))| after.is_absent()).map(|(path, _)| path).collect();
    let files = files_notice(&restored, &removed);
    Ok(files.or_else(|| {
        child.then(|| {
            "[rwd] This conversation was rewound; the files of the workspace were left as they are: they may hold work \
             that it does not know of. Read a file again before you edit it."
                .to_owned()
        })
    }))
}
