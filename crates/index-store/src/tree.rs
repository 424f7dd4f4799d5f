//! Rows in memory, and changes to them that can be taken back.

use std::{
    cell::Cell,
    collections::{BTreeMap, btree_map::Range},
    ops::{Bound, ControlFlow},
};

use checkpoint_core::IndexError;

use crate::{
    format::Format,
    rows::{KeyRange, Rows, RowsMut, Table, Visit},
};

/// One table: key → document.
pub(crate) type Content = BTreeMap<String, String>;

/// All rows. Tables go by name, so that those of a newer format are kept.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) format: Format,
    pub(crate) tables: BTreeMap<String, Content>,
    /// Rows that were looked at.
    visited: Cell<u64>,
}

impl Tree {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format, tables: BTreeMap::new(), visited: Cell::new(0) }
    }

    /// Rows that were looked at so far.
    pub(crate) fn visited(&self) -> u64 {
        self.visited.get()
    }

    fn visit(&self) {
        self.visited.set(self.visited.get() + 1);
    }

    /// Sets or removes a row and gives what was there.
    pub(crate) fn set(&mut self, table: &str, key: &str, document: Option<String>) -> Option<String> {
        match document {
            Some(document) => match self.tables.get_mut(table) {
                Some(content) => content.insert(key.to_owned(), document),
                None => self.tables.entry(table.to_owned()).or_default().insert(key.to_owned(), document),
            },
            None => self.tables.get_mut(table)?.remove(key),
        }
    }
}

impl Rows for Tree {
    fn format(&self) -> Format {
        self.format
    }

    fn get(&self, table: Table, key: &str) -> Result<Option<String>, IndexError> {
        self.visit();
        Ok(self.tables.get(table.name()).and_then(|content| content.get(key)).cloned())
    }

    fn scan(&self, table: Table, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), IndexError> {
        let Some(content) = self.tables.get(table.name()) else {
            return Ok(());
        };
        let mut rows = select(content, range);
        while let Some((key, document)) = if range.backward { rows.next_back() } else { rows.next() } {
            self.visit();
            if visit(key, document)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// `BTreeMap::range` panics where a range is upside down; here that is merely empty.
fn select<'a>(content: &'a Content, range: &KeyRange) -> Range<'a, String, String> {
    let empty = match (&range.from, &range.to) {
        (Bound::Excluded(from), Bound::Excluded(to) | Bound::Included(to))
        | (Bound::Included(from), Bound::Excluded(to)) => from >= to,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        _ => false,
    };
    if empty { Range::default() } else { content.range((range.from.clone(), range.to.clone())) }
}

/// Changes in the making: applied to the tree at once, with what is needed to take them back.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    tree: &'a mut Tree,
    /// What each changed row held before, by table and key.
    before: BTreeMap<(&'static str, String), Option<String>>,
}

impl<'a> Journal<'a> {
    pub(crate) const fn new(tree: &'a mut Tree) -> Self {
        Self { tree, before: BTreeMap::new() }
    }

    /// Every changed row with what it holds now, by table and key.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        self.before.keys().map(|(table, key)| {
            let table: &str = table;
            let now = self.tree.tables.get(table).and_then(|content| content.get(key));
            (table, key.as_str(), now.map(String::as_str))
        })
    }

    /// Puts everything back as it was.
    pub(crate) fn roll_back(self) {
        for ((table, key), document) in self.before {
            self.tree.set(table, &key, document);
        }
    }

    fn change(&mut self, table: Table, key: &str, document: Option<String>) {
        let before = self.tree.set(table.name(), key, document);
        self.before.entry((table.name(), key.to_owned())).or_insert(before);
    }
}

impl Rows for Journal<'_> {
    fn format(&self) -> Format {
        self.tree.format()
    }

    fn get(&self, table: Table, key: &str) -> Result<Option<String>, IndexError> {
        self.tree.get(table, key)
    }

    fn scan(&self, table: Table, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), IndexError> {
        self.tree.scan(table, range, visit)
    }
}

impl RowsMut for Journal<'_> {
    fn put(&mut self, table: Table, key: &str, document: String) -> Result<(), IndexError> {
        self.change(table, key, Some(document));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &str) -> Result<(), IndexError> {
        self.change(table, key, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_is_rolled_back_leaves_nothing() {
        let mut tree = Tree::new(Format::CURRENT);
        tree.set("name", "a", Some("1".into()));
        let before = tree.tables["name"].clone();
        let mut journal = Journal::new(&mut tree);
        for (key, document) in [("a", "2"), ("a", "3"), ("b", "4")] {
            journal.put(Table::Name, key, document.to_owned()).unwrap();
        }
        journal.delete(Table::Name, "a").unwrap();
        journal.delete(Table::Name, "b").unwrap();
        assert_eq!(journal.changes().collect::<Vec<_>>(), [("name", "a", None), ("name", "b", None)]);
        journal.roll_back();
        assert_eq!(tree.tables["name"], before);
    }

    #[test]
    fn a_range_that_is_upside_down_is_empty() {
        let mut tree = Tree::new(Format::CURRENT);
        tree.set("name", "b", Some("1".into()));
        let range = KeyRange { from: Bound::Excluded("c".into()), to: Bound::Included("a".into()), backward: true };
        tree.scan(Table::Name, &range, &mut |key, _| panic!("visited {key}")).unwrap();
    }
}
