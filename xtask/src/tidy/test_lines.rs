//! The table of test lines is counted, not typed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, Tree, has_extension};

const PAGE: &str = "docs/test-lines.md";

/// Numbers of lines by the letter of their theme.
type Lines = BTreeMap<char, BTreeSet<u8>>;

/// Each row says how many lines of its theme tests carry: in Rust (`tj19_…` in a name), in the plugin (`TJ19` in a
/// title), and how many none does.
pub(super) fn counts(tree: &Tree) -> Vec<Breach> {
    let Some(page) = tree.text.get(PAGE) else { return vec![format!("{PAGE} is missing")] };
    let (mut rust, mut plugin) = (Lines::new(), Lines::new());
    for (path, text) in &tree.text {
        if path.starts_with("crates/") && has_extension(path, "rs") {
            collect(
                text,
                't',
                |before, after| !before.is_some_and(|c| c.is_ascii_alphanumeric()) && after == Some('_'),
                &mut rust,
            );
        } else if path.starts_with("integrations/dsh/test/") {
            let apart = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            collect(text, 'T', |before, after| apart(before) && apart(after), &mut plugin);
        }
    }
    let mut breaches = Vec::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [theme, numbers @ ..] = &cells[..] else { continue };
        let mut letters = theme.chars();
        let (Some(letter @ 'A'..='Q'), Some(' ')) = (letters.next(), letters.next()) else { continue };
        let numbers: Vec<usize> = numbers.iter().filter_map(|cell| cell.parse().ok()).collect();
        let [all, in_rust, in_plugin, none] = numbers[..] else { continue };
        let of = |lines: &Lines| lines.get(&letter).cloned().unwrap_or_default();
        let (by_rust, by_plugin) = (of(&rust), of(&plugin));
        let with = by_rust.union(&by_plugin).count();
        let found = (by_rust.len(), by_plugin.len(), all.saturating_sub(with));
        if (in_rust, in_plugin, none) != found {
            let (rust, plugin, none) = found;
            breaches.push(format!(
                "{PAGE}: theme {letter} has {rust} lines with a test in Rust, {plugin} in the plugin, {none} with none"
            ));
        }
    }
    breaches
}

/// Finds `T`, a letter and two digits where the characters around it are as they should.
fn collect(text: &str, first: char, around: impl Fn(Option<char>, Option<char>) -> bool, lines: &mut Lines) {
    for (at, _) in text.match_indices(first) {
        let mut rest = text[at + 1..].chars();
        let (Some(letter), Some(tens), Some(ones)) = (rest.next(), rest.next(), rest.next()) else { continue };
        let letter = letter.to_ascii_uppercase();
        let right_case = text[at + 1..].starts_with(|c: char| c.is_ascii_uppercase()) == first.is_ascii_uppercase();
        let (Some(tens), Some(ones)) = (tens.to_digit(10), ones.to_digit(10)) else { continue };
        let before = text[..at].chars().next_back();
        if right_case && ('A'..='Q').contains(&letter) && around(before, rest.next()) {
            let number = u8::try_from(10 * tens + ones).expect("below a hundred");
            lines.entry(letter).or_default().insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_where_tests_carry_them() {
        let row = |numbers: &str| format!("| theme | lines |\n| J the rewind | 5 | {numbers} |\n");
        let rust = "fn tj19_tj20_plans() {}\nlet subtj21_x = 1; // tj22 in passing\n";
        let check = |numbers: &str| {
            let page = row(numbers);
            let files = [
                (PAGE, &*page),
                ("crates/a/tests/it/x.rs", rust),
                ("integrations/dsh/test/a.test.ts", "test(\"TJ20 TJ23: goes back\")"),
            ];
            counts(&Tree::of(&files))
        };
        assert_eq!(check("2 | 2 | 2"), Vec::<Breach>::new());
        assert_eq!(check("3 | 2 | 2").len(), 1);
        assert_eq!(check("2 | 2 | 3").len(), 1);
    }
}
