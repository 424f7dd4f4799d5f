//! Digests over the rows of `index.sqlite`: a page of SQLite has no checksum, so a flipped bit in a text that still reads
//! would be believed.
//!
//! Each row carries a digest over its table, key and document, compared whenever it is read. What no row can say, that
//! another one is missing, is said by one row for all of them: how many there are, and the sum of their digests. Both came
//! with format 1.1; rows that an older version wrote carry none, and after such a write the row for all claims nothing
//! until the next batch makes it anew (`docs/format-index.md`).

use checkpoint_core::Revision;
use serde::{Deserialize, Serialize};

/// Key of the row for all rows, in the table of states.
pub(crate) const DIGEST: &str = "digest";
/// Key of a row without meaning, which maintenance writes beside every batch: it is not counted.
pub(crate) const TENDED: &str = "tended";

/// Digest of one row. FNV-1a with a mixing step at the end: each step is one-to-one in the state, so two rows of one length
/// that differ in a single byte never have the same.
pub(crate) fn of_row(table: &str, key: &str, document: &str) -> u64 {
    // No byte of a text is 0xff, so the parts cannot run into each other.
    let parts = [table.as_bytes(), &[0xff], key.as_bytes(), &[0xff], document.as_bytes()];
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.into_iter().flatten() {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // A sum of plain states would be too regular.
    state = (state ^ (state >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state ^ (state >> 29)
}

/// True for the rows that the row for all speaks of.
pub(crate) fn is_counted(table: &str, key: &str) -> bool {
    table != "state" || (key != DIGEST && key != TENDED)
}

/// What is said of all rows.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Whole {
    /// The revision that it speaks of; of another one it says nothing.
    pub(crate) revision: Revision,
    /// Counted rows of all tables.
    pub(crate) rows: u64,
    /// Their digests, added up modulo 2^64.
    pub(crate) sum: u64,
}

impl Whole {
    pub(crate) fn add(&mut self, digest: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.sum = self.sum.wrapping_add(digest);
    }

    pub(crate) fn take(&mut self, digest: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(digest);
    }

    /// With the changes that `by` has seen.
    #[must_use]
    pub(crate) fn changed(self, by: Self, revision: Revision) -> Self {
        Self { revision, rows: self.rows.wrapping_add(by.rows), sum: self.sum.wrapping_add(by.sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flipped_bit_changes_the_digest_and_parts_do_not_run_together() {
        let text = "00000000000000000007{\"ord\":7}";
        let sound = of_row("point", "k", text);
        for at in 0..text.len() * 8 {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at / 8] ^= 1 << (at % 8);
            if let Ok(other) = String::from_utf8(bytes) {
                assert_ne!(of_row("point", "k", &other), sound, "{at}");
            }
        }
        assert_ne!(of_row("point", "kx", "y"), of_row("point", "k", "xy"));
        assert_ne!(of_row("pointk", "", "y"), of_row("point", "k", "y"));
    }

    #[test]
    fn what_was_added_can_be_taken_again() {
        let (mut whole, mut change) = (Whole::default(), Whole::default());
        whole.add(u64::MAX);
        whole.add(7);
        change.take(u64::MAX);
        let mut left = Whole { revision: Revision(3), ..Whole::default() };
        left.add(7);
        assert_eq!(whole.changed(change, Revision(3)), left);
    }
}
