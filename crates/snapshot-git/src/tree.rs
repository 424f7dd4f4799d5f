//! The bytes of a git tree.

use checkpoint_core::ObjectId;

/// Mode of a subdirectory.
pub(crate) const TREE: &[u8] = b"40000";

/// One line of a tree.
pub(crate) struct Line<'n> {
    mode: &'static [u8],
    name: &'n [u8],
    id: ObjectId,
}

impl<'n> Line<'n> {
    /// `mode` as git writes it, without leading zeros.
    pub(crate) fn new(mode: &'static [u8], name: &'n [u8], id: ObjectId) -> Self {
        Self { mode, name, id }
    }

    /// Git sorts a directory as if its name ended in a slash.
    fn order(&self) -> impl Iterator<Item = &u8> {
        self.name.iter().chain((self.mode == TREE).then_some(&b'/'))
    }
}

/// The tree with these lines, whatever their order.
pub(crate) fn tree_body(mut lines: Vec<Line<'_>>) -> Vec<u8> {
    lines.sort_unstable_by(|a, b| a.order().cmp(b.order()));
    let mut body = Vec::with_capacity(lines.iter().map(|l| l.name.len() + 28).sum());
    for line in lines {
        body.extend_from_slice(line.mode);
        body.push(b' ');
        body.extend_from_slice(line.name);
        body.push(0);
        body.extend_from_slice(line.id.as_bytes());
    }
    body
}
