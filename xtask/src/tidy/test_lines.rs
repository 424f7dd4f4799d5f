//! The page of test lines is checked against what tests carry: every number is counted, none is typed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Breach, Tree, has_extension};

const PAGE: &str = "docs/test-lines.md";
/// What follows it are reasons why a line has no test; rows before it speak of lines that have one.
const REASONS: &str = "\n## Lines without a test\n";

/// A line: the letter of its theme, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Line(char, u8);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}{:02}", self.0, self.1)
    }
}

/// Lines, each with a file that carries it.
type Carried<'a> = BTreeMap<Line, &'a str>;

/// What carries lines.
#[derive(Default)]
struct Tests<'a> {
    rust: Carried<'a>,
    cases: Carried<'a>,
    plugin: Carried<'a>,
}

impl<'a> Tests<'a> {
    /// In Rust `tj19_…` in a name, in the plugin `TJ19` in a title, in a conformance case `# LINES: TJ19` in its header.
    fn of(tree: &'a Tree) -> Self {
        let mut tests = Self::default();
        for (path, text) in &tree.text {
            if path.starts_with("crates/") && has_extension(path, "rs") {
                // Where a name ends or goes on, but not in the middle of a word.
                let in_name = |before: Option<char>, after| {
                    !before.is_some_and(|c: char| c.is_ascii_alphanumeric()) && after == Some('_')
                };
                tests
                    .rust
                    .extend(numbers(text, 't').filter(|(_, b, a)| in_name(*b, *a)).map(|(line, ..)| (line, &**path)));
            } else if path.starts_with("integrations/dsh/test/") {
                tests.plugin.extend(words(text).map(|line| (line, &**path)));
            } else if path.starts_with("tests/cases/") && has_extension(path, "sh") {
                let said = text.lines().filter_map(|line| line.strip_prefix("# LINES: "));
                tests.cases.extend(said.flat_map(words).map(|line| (line, &**path)));
            }
        }
        tests
    }

    fn carry(&self, line: Line) -> Option<&'a str> {
        [&self.rust, &self.cases, &self.plugin].into_iter().find_map(|by| by.get(&line).copied())
    }
}

/// Every `T`, letter and two digits of the case of `first`, with the characters around it.
fn numbers(text: &str, first: char) -> impl Iterator<Item = (Line, Option<char>, Option<char>)> + '_ {
    text.match_indices(first).filter_map(move |(at, _)| {
        let mut rest = text[at + 1..].chars();
        let letter = rest.next()?;
        let digits = [rest.next()?.to_digit(10)?, rest.next()?.to_digit(10)?];
        let right_case = letter.is_ascii_uppercase() == first.is_ascii_uppercase();
        let letter = letter.to_ascii_uppercase();
        let number = u8::try_from(10 * digits[0] + digits[1]).ok()?;
        let before = text[..at].chars().next_back();
        (right_case && ('A'..='Q').contains(&letter)).then(|| (Line(letter, number), before, rest.next()))
    })
}

/// The numbers that stand for themselves.
fn words(text: &str) -> impl Iterator<Item = Line> + '_ {
    let apart = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    numbers(text, 'T').filter(move |(_, before, after)| apart(*before) && apart(*after)).map(|(line, ..)| line)
}

/// The lines there are: `A 01 03 …` in the page's block of code.
fn listed(page: &str) -> BTreeSet<Line> {
    let block = page.split("```").nth(1).unwrap_or_default();
    let mut lines = BTreeSet::new();
    for row in block.lines() {
        let mut words = row.split_whitespace();
        let Some(letter) = words.next().and_then(|word| word.parse().ok()) else { continue };
        lines.extend(words.filter_map(|word| word.parse().ok()).map(|number| Line(letter, number)));
    }
    lines
}

/// The lines that rows speak of: `TA21`, and `TA24 to TA27` for all between.
fn spoken_of(page: &str, all: &BTreeSet<Line>) -> BTreeSet<Line> {
    let mut spoken = BTreeSet::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| T")) {
        let cell = format!("T{}", row.split('|').next().unwrap_or_default());
        let mut last = None;
        for part in cell.split(" to ") {
            let found: Vec<Line> = words(part).collect();
            if let (Some(from), Some(to)) = (last, found.first()) {
                spoken.extend(all.range(from..=*to));
            }
            last = found.last().copied();
            spoken.extend(found);
        }
    }
    spoken
}

/// The counts of the table, numbers that are no line, and lines that have neither a test nor a reason, or both.
pub(super) fn counts(tree: &Tree) -> Vec<Breach> {
    let Some(page) = tree.text.get(PAGE) else { return vec![format!("{PAGE} is missing")] };
    let (all, tests) = (listed(page), Tests::of(tree));
    let (tested, reasons) = page.split_once(REASONS).unwrap_or((page, ""));
    let excused = spoken_of(reasons, &all);
    let mut breaches = Vec::new();
    for (line, path) in [&tests.rust, &tests.cases, &tests.plugin].into_iter().flatten() {
        if !all.contains(line) {
            breaches.push(format!("{path}: there is no line {line}"));
        }
    }
    for line in &excused {
        match tests.carry(*line) {
            Some(path) => breaches.push(format!("{PAGE}: {line} has a test in {path}, so it needs no reason")),
            None if !all.contains(line) => breaches.push(format!("{PAGE}: there is no line {line}")),
            None => {}
        }
    }
    let tested = spoken_of(tested, &all).into_iter().filter(|line| tests.carry(*line).is_none());
    breaches.extend(tested.map(|line| format!("{PAGE}: no test carries {line}, of which a row says that one does")));
    let bare = all.iter().filter(|line| tests.carry(**line).is_none() && !excused.contains(line));
    breaches.extend(bare.map(|line| format!("{PAGE}: no test carries {line}, and there is no reason")));
    let mut themes: BTreeSet<char> = all.iter().map(|line| line.0).collect();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [theme, numbers @ ..] = &cells[..] else { continue };
        let mut letters = theme.chars();
        let (Some(letter @ 'A'..='Q'), Some(' ')) = (letters.next(), letters.next()) else { continue };
        themes.remove(&letter);
        let typed: Vec<usize> = numbers.iter().filter_map(|cell| cell.parse().ok()).collect();
        let count = |has: &dyn Fn(&Line) -> bool| all.iter().filter(|line| line.0 == letter && has(line)).count();
        let found = [
            count(&|_| true),
            count(&|line| tests.rust.contains_key(line)),
            count(&|line| tests.cases.contains_key(line)),
            count(&|line| tests.plugin.contains_key(line)),
            count(&|line| tests.carry(*line).is_none()),
        ];
        if typed != found {
            let cells = found.map(|count| count.to_string()).join(" | ");
            breaches.push(format!("{PAGE}: the row of {letter} is: | {theme} | {cells} |"));
        }
    }
    breaches.extend(themes.iter().map(|theme| format!("{PAGE}: no row for theme {theme}")));
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, reasons: &str, rust: &str) -> Vec<Breach> {
        let head =
            format!("| theme | lines |\n| J the rewind | {row} |\n```\nJ 19 20 21 23 24 25\n```\n| TJ19 | so |\n");
        let page = format!("{head}{REASONS}{reasons}\n");
        counts(&Tree::of(&[
            (PAGE, &page),
            ("crates/a/tests/it/x.rs", rust),
            ("integrations/dsh/test/a.test.ts", "test(\"TJ20 TJ23: goes back\")"),
            ("tests/cases/01-x.sh", "# LINES: TJ24\n# EXPECT: TJ21\n"),
        ]))
    }

    const RUST: &str = "fn tj19_tj20_plans() {}\nlet subtj21_x = 1; // tj21 in passing\n";
    const WHY: &str = "| TJ21, TJ25 | why |";

    #[test]
    fn lines_are_counted_where_tests_carry_them() {
        assert_eq!(check("6 | 2 | 1 | 2 | 2", WHY, RUST), Vec::<Breach>::new());
        for row in ["5 | 2 | 1 | 2 | 2", "6 | 3 | 1 | 2 | 2", "6 | 2 | 0 | 2 | 2", "6 | 2 | 1 | 2 | 3", "6", "x"] {
            assert_eq!(check(row, WHY, RUST).len(), 1, "{row}");
        }
    }

    #[test]
    fn every_line_has_a_test_or_a_reason_and_not_both() {
        let row = "6 | 2 | 1 | 2 | 2";
        assert_eq!(
            check(row, "| TJ21 | why |", RUST),
            ["docs/test-lines.md: no test carries TJ25, and there is no reason"]
        );
        assert_eq!(check(row, "| TJ21 to TJ25 | why |", RUST).len(), 2, "two between have a test");
        assert_eq!(check(row, "| TJ21, TJ25, TJ22 | why |", RUST), ["docs/test-lines.md: there is no line TJ22"]);
        let more = format!("{RUST}fn tj99_x() {{}}\n");
        assert_eq!(check(row, WHY, &more), ["crates/a/tests/it/x.rs: there is no line TJ99"]);
        // The row that says that TJ19 has a test is stale.
        assert_eq!(check("6 | 1 | 1 | 2 | 3", "| TJ19, TJ21, TJ25 | why |", &RUST.replace("tj19_", "")).len(), 1);
    }
}
