//! Rules about pages and cases.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use super::{Breach, Tree, crates::declared};

/// Where every dependency is given a reason.
const REASONS: &str = "docs/dependencies.md";

/// Every workspace dependency has a row with a reason, and every row a dependency.
pub(super) fn dependencies(tree: &Tree, root: &toml::Table) -> Vec<Breach> {
    let page = tree.text.get(REASONS).map_or("", String::as_str);
    let rows: BTreeSet<_> = page
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` |")?;
            (rest.trim_matches([' ', '|']).len() > 3).then_some(name)
        })
        .collect();
    let declared: BTreeSet<_> =
        declared(root).filter(|(_, spec)| spec.get("path").is_none()).map(|(name, _)| name).collect();
    let missing = declared.difference(&rows).map(|name| format!("{REASONS} gives no reason for {name}"));
    let stale =
        rows.difference(&declared).map(|name| format!("{REASONS} names {name}, which is no workspace dependency"));
    missing.chain(stale).collect()
}

/// Links between pages lead somewhere.
pub(super) fn links(tree: &Tree) -> Vec<Breach> {
    let files: BTreeSet<&Path> = tree.all.iter().flat_map(|path| path.ancestors()).collect();
    let mut breaches = Vec::new();
    for (page, text) in tree.text.iter().filter(|(path, _)| super::has_extension(path, "md")) {
        for (at, _) in text.match_indices("](") {
            let Some((target, _)) = text[at + 2..].split_once(')') else { continue };
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let whole = Path::new(page).parent().unwrap_or(Path::new("")).join(target);
            if resolved(&whole).is_none_or(|path| !files.contains(path.as_path())) {
                breaches.push(format!("{page}: the link to {target} leads nowhere"));
            }
        }
    }
    breaches
}

/// `path` without `.` and `..`; `None` when it leaves the repository.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => out.pop().then_some(())?,
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Every conformance case is in the index, says what it expects, and the index names no other.
pub(super) fn cases(tree: &Tree) -> Vec<Breach> {
    const DIR: &str = "tests/cases/";
    let index = tree.text.get("tests/cases/INDEX.tsv").map_or("", String::as_str);
    let listed: BTreeSet<String> =
        index.lines().skip(1).map(|line| line.split('\t').take(2).collect::<Vec<_>>().join("-")).collect();
    let mut breaches = Vec::new();
    let mut found = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (path, text) in &tree.text {
        let Some(name) = path.strip_prefix(DIR).and_then(|name| name.strip_suffix(".sh")) else { continue };
        if !name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        found.insert(name.to_owned());
        if !numbers.insert(name.split('-').next().unwrap_or_default()) {
            breaches.push(format!("{path}: its number is taken"));
        }
        if !text.contains(&format!("# CASE: {name}\n")) {
            breaches.push(format!("{path}: the header names another case"));
        }
        for key in ["# THEME: ", "# SOURCE: ", "# DATA-LOSS: ", "# NEEDS: ", "# EXPECT: "] {
            if !text.contains(key) {
                breaches.push(format!("{path}: no line {key}"));
            }
        }
    }
    breaches.extend(found.difference(&listed).map(|name| format!("{DIR}INDEX.tsv does not list {name}")));
    breaches.extend(listed.difference(&found).map(|name| format!("{DIR}INDEX.tsv lists {name}, which does not exist")));
    breaches
}

/// A page names no verb that the command line does not have.
pub(super) fn verbs(tree: &Tree, command: &clap::Command) -> Vec<Breach> {
    let known: BTreeSet<&str> =
        command.get_subcommands().flat_map(|verb| verb.get_all_aliases().chain([verb.get_name()])).collect();
    let mut breaches = Vec::new();
    for (page, text) in tree.text.iter().filter(|(path, _)| super::has_extension(path, "md")) {
        for (number, line) in text.lines().enumerate() {
            for before in ["`rwd ", "$ rwd "] {
                for (at, _) in line.match_indices(before) {
                    let rest = &line[at + before.len()..];
                    let verb = rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap_or_default();
                    // Nothing or an option: the timeline, or what holds for every verb.
                    if !verb.is_empty() && !verb.starts_with('-') && !known.contains(verb) {
                        breaches.push(format!("{page}:{}: there is no verb {verb}", number + 1));
                    }
                }
            }
        }
    }
    breaches
}

/// Where every error code is explained.
const CODES: &str = "docs/cli.md";

/// Every code that an error can have is explained in one place.
pub(super) fn codes(tree: &Tree) -> Vec<Breach> {
    let page = tree.text.get(CODES).map_or("", String::as_str);
    let mut breaches = Vec::new();
    for (path, text) in tree.shipped().filter(|(path, _)| !path.ends_with("tests.rs")) {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut in_codes = false;
        for line in text.lines() {
            let of_error = ["code(&self)", "code(error: "].iter().any(|signature| line.contains(signature));
            in_codes = (in_codes && line.trim() != "}") || (line.contains("fn ") && of_error);
            if in_codes {
                found.extend(quoted_after(line, "=> \""));
            }
            found.extend(quoted_after(line, "code: \"").into_iter().chain(quoted_after(line, "CliError::usage(\"")));
        }
        let missing = found.into_iter().filter(|code| !page.contains(&format!("`{code}`")));
        breaches.extend(missing.map(|code| format!("{path}: {CODES} does not explain the code {code}")));
    }
    breaches
}

/// The text from the end of `before` to the next quotation mark.
fn quoted_after<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    Some(line.split_once(before)?.1.split_once('"')?.0)
}

/// The changelog has a place for what comes next.
pub(super) fn changelog(tree: &Tree) -> Vec<Breach> {
    let text = tree.text.get("CHANGELOG.md").map_or("", String::as_str);
    if text.contains("## [Unreleased]") { Vec::new() } else { vec!["CHANGELOG.md has no [Unreleased]".to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_and_a_reason_without_a_dependency_are_named() {
        let root: toml::Table = "[workspace.dependencies]\na = '1'\nb = { path = 'b' }".parse().unwrap();
        let page = |text| dependencies(&Tree::of(&[(REASONS, text)]), &root);
        assert!(page("| `a` | parses things |\n").is_empty());
        assert_eq!(page("| `a` | |\n").len(), 1);
        assert_eq!(page("| `a` | parses things |\n| `z` | is gone |\n").len(), 1);
    }

    #[test]
    fn a_code_without_an_explanation_is_named() {
        let code = r#"pub fn code(&self) -> &str {
    match self {
        A => "one",
        B => "two",
    }
}
fn other() { match 1 { _ => "three" } CliError::usage("four", "") }
#[cfg(test)] mod tests { code: "five" }
"#;
        let named = |page| codes(&Tree::of(&[("crates/a/src/error.rs", code), (CODES, page)])).len();
        assert_eq!((named("`one` `two` `four`"), named("`one` `four`"), named("one two four")), (0, 1, 3));
    }

    #[test]
    fn a_dead_link_is_named() {
        let tree = |text| Tree::of(&[("docs/a.md", text), ("README.md", ""), ("docs/b/c.md", "")]);
        assert!(
            links(&tree("[x](../README.md) [y](b/c.md#z) [d](b) [w](https://example.invalid/a) [s](#here)")).is_empty()
        );
        assert_eq!(links(&tree("[x](gone.md)")).len(), 1);
        assert_eq!(links(&tree("[x](../../README.md)")).len(), 1);
    }

    #[test]
    fn a_verb_that_does_not_exist_is_named() {
        let save = clap::Command::new("save").visible_alias("keep");
        let command = clap::Command::new("rwd").subcommand(save);
        let page = |text| verbs(&Tree::of(&[("README.md", text)]), &command);
        assert!(page("`rwd save -m X` · `rwd keep` · `rwd --json` · `rwd`\n$ rwd save\nthe rwd way").is_empty());
        assert_eq!(page("`rwd save` · `rwd conjure`"), ["README.md:1: there is no verb conjure"]);
        assert_eq!(page("$ rwd conjure").len(), 1);
    }

    #[test]
    fn a_case_outside_the_index_is_named() {
        let head = "# CASE: 01-a\n# THEME: t\n# SOURCE: s\n# DATA-LOSS: no\n# NEEDS: -\n# EXPECT: e\n";
        let tree = |index| Tree::of(&[("tests/cases/01-a.sh", head), ("tests/cases/INDEX.tsv", index)]);
        assert!(cases(&tree("number\tname\n01\ta\tt\n")).is_empty());
        assert_eq!(cases(&tree("number\tname\n")).len(), 1);
        assert_eq!(cases(&tree("number\tname\n01\ta\n02\tb\n")).len(), 1);
    }
}
