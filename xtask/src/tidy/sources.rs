//! Rules about source text.

use std::collections::BTreeSet;

use super::{Breach, Tree};

/// Lines a source file may have; past it, it holds more than one thing.
const MAX_LINES: usize = 800;

/// Text that stands for work not done.
const UNFINISHED: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("XX", "X:")];

/// What the core must not name: it opens no file, reads no clock, spawns nothing and asks the environment nothing.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::os",
    "SystemTime",
    "Instant",
    // Threads of a scope are computation; these two are time and life of their own.
    "thread::sleep",
    "thread::spawn",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
];

/// Names that stand for anybody in an example of a home directory.
const ANYBODY: &[&str] =
    &["user", "me", "you", "u", "alice", "bob", "someone", "dev", "runner", "*", "…", "NAME", "USER"];

/// No source file is longer than [`MAX_LINES`].
pub(super) fn length(tree: &Tree) -> Vec<Breach> {
    let code =
        tree.text.iter().filter(|(path, _)| ["rs", "sh", "ts"].iter().any(|end| super::has_extension(path, end)));
    code.map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path} has {lines} lines; split it ({MAX_LINES} at most)"))
        .collect()
}

/// Nothing unfinished is shipped.
pub(super) fn unfinished(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in tree.shipped() {
        for (number, line) in lines(text) {
            breaches.extend(
                UNFINISHED.iter().filter(|word| line.contains(**word)).map(|word| format!("{path}:{number}: {word}")),
            );
        }
    }
    breaches
}

/// Lints are silenced by `expect`, which complains when it has become needless. Where a lint fires on some platforms
/// only, nothing but `allow` works, and its reason says so.
pub(super) fn allowed(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in tree.shipped() {
        for (at, _) in text.match_indices("[allow(") {
            let opened = text[..at].trim_end_matches('!');
            let whole = text[at..].split(")]").next().unwrap_or_default();
            if opened.ends_with('#') && !whole.contains("platform") {
                let number = text[..at].lines().count();
                breaches.push(format!("{path}:{number}: use #[expect(…, reason = \"…\")]"));
            }
        }
    }
    breaches
}

/// No path of the machine somebody worked on.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in &tree.text {
        for (number, line) in lines(text) {
            if let Some(found) = machine_path(line) {
                breaches.push(format!("{path}:{number}: {found} is a path of one machine"));
            }
        }
    }
    breaches
}

/// The first path in `line` that only exists on one machine.
fn machine_path(line: &str) -> Option<&str> {
    const PLACES: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];
    for place in PLACES {
        for (at, _) in line.match_indices(place) {
            // `$dir/…/x` and `a/…/x` only contain the name further down.
            let inside = line[..at]
                .chars()
                .next_back()
                .is_some_and(|before| before.is_alphanumeric() || "_-.})*~]>".contains(before));
            let rest = &line[at + place.len()..];
            let name = rest.split(|c: char| !(c.is_alphanumeric() || "_-.*…".contains(c))).next().unwrap_or_default();
            let anybody = place.contains("home") && (name.is_empty() || ANYBODY.contains(&name));
            if !inside && !anybody {
                return Some(&line[at..at + place.len() + name.len()]);
            }
        }
    }
    None
}

/// The core has no access to the world, its tests apart.
pub(super) fn pure_core(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in tree.shipped().filter(|(path, _)| path.starts_with("crates/checkpoint-core/")) {
        // Unit tests come last in a file.
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in lines(shipped) {
            let code = line.split("//").next().unwrap_or_default();
            let words = |name: &str| {
                code.match_indices(name).any(|(at, _)| {
                    let ends = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                    ends(code[..at].chars().next_back()) && ends(code[at + name.len()..].chars().next())
                })
            };
            breaches.extend(
                IMPURE
                    .iter()
                    .filter(|name| words(name))
                    .map(|name| format!("{path}:{number}: the core must not use {name}")),
            );
        }
        for (at, _) in shipped.match_indices("use std::{") {
            let number = shipped[..at].lines().count() + 1;
            let names = grouped(&shipped[at + "use std::{".len()..]);
            breaches.extend(
                names
                    .filter(|name| IMPURE.contains(&name.as_str()))
                    .map(|name| format!("{path}:{number}: the core must not use {name}")),
            );
        }
    }
    breaches
}

/// The modules of a list `fmt, fs, time::{…}};` as `std::fmt`, `std::fs`, `std::time`.
fn grouped(list: &str) -> impl Iterator<Item = String> {
    let list = list.split(';').next().unwrap_or_default();
    let mut depth = 0_i32;
    let top: String = list
        .chars()
        .filter(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        })
        .collect();
    let names: Vec<_> =
        top.split(',').map(|part| format!("std::{}", part.trim().split("::").next().unwrap_or_default())).collect();
    names.into_iter()
}

/// Each crate has one integration binary, and it names every module beside it.
pub(super) fn test_modules(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, _) in tree.rust() {
        let Some((krate, rest)) = path.split_once("/tests/") else { continue };
        if !(krate.starts_with("crates/") || krate == "xtask") {
            continue;
        }
        let parts: Vec<_> = rest.split('/').collect();
        match parts.as_slice() {
            [single] => breaches.push(format!("{path}: {single} is linked on its own; move it to tests/it/")),
            ["it", "main.rs"] => {}
            ["it", module, ..] => {
                let module = module.trim_end_matches(".rs");
                let main = tree.text.get(&format!("{krate}/tests/it/main.rs")).map_or("", String::as_str);
                let named: BTreeSet<_> = main.lines().map(str::trim).collect();
                if !named.contains(format!("mod {module};").as_str())
                    && !named.contains(format!("pub mod {module};").as_str())
                {
                    breaches.push(format!("{path}: main.rs does not name it, so it never runs"));
                }
            }
            _ => {}
        }
    }
    breaches.dedup();
    breaches
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_told_from_one_that_only_contains_the_name() {
        let bad = [concat!("/wo", "rk/x"), concat!("see /ro", "ot/.cargo"), concat!("\"/ho", "me/karl/x\"")];
        for line in bad {
            assert!(machine_path(line).is_some(), "{line}");
        }
        for line in ["$T/work/x", "a/root/b", "/home/user/x", "/home/…", "~/work/x", "the root", "/homework/"] {
            assert_eq!(machine_path(line), None, "{line}");
        }
    }

    #[test]
    fn the_core_may_name_durations_but_no_clock_and_no_file() {
        let core = |text: &str| pure_core(&Tree::of(&[("crates/checkpoint-core/src/a.rs", text)])).len();
        assert_eq!(core("use std::{fmt, ops::ControlFlow, time::Duration};"), 0);
        assert_eq!(core("use std::time::{Duration, Instant};"), 1);
        assert_eq!(core("use std::{fmt, fs};"), 1);
        assert_eq!(core("use std::{\n    fmt,\n    fs,\n};"), 1);
        assert_eq!(core("use std::{\n    time::{\n        Duration,\n    },\n    env,\n};"), 1);
        assert_eq!(core("Engine {\n    fs,\n    env,\n}"), 0);
        assert_eq!(core("let a = std::fs::read(path);"), 1);
        assert_eq!(core("// std::fs is not for us\n/// nor SystemTime\nstruct Instants;"), 0);
        assert_eq!(core("#[cfg(test)]\nmod tests { use std::fs; }"), 0);
        assert_eq!(pure_core(&Tree::of(&[("crates/durable-fs/src/a.rs", "use std::fs;")])).len(), 0);
    }

    #[test]
    fn unfinished_work_and_allowances_are_found_where_they_ship() {
        let text = concat!("fn a() { todo", "!() }\n#[allow(dead_code)]\nfn b() {}");
        let tree = Tree::of(&[("crates/a/src/lib.rs", text), ("crates/a/tests/it/main.rs", text)]);
        assert_eq!((unfinished(&tree).len(), allowed(&tree).len()), (1, 1));
        let text = "#![allow(a)]\n#[allow(\n    a,\n    reason = \"a cast on some platforms\"\n)]\n#[cfg_attr(test, allow(a))]";
        assert_eq!(
            allowed(&Tree::of(&[("crates/a/src/lib.rs", text)])),
            ["crates/a/src/lib.rs:1: use #[expect(…, reason = \"…\")]"]
        );
    }

    #[test]
    fn a_test_module_that_never_runs_is_found() {
        let main = ("crates/a/tests/it/main.rs", "mod one;\n");
        let tree = |path| Tree::of(&[main, (path, "")]);
        assert!(test_modules(&tree("crates/a/tests/it/one.rs")).is_empty());
        assert!(test_modules(&tree("crates/a/tests/it/one/more.rs")).is_empty());
        assert_eq!(test_modules(&tree("crates/a/tests/it/two.rs")).len(), 1);
        assert_eq!(test_modules(&tree("crates/a/tests/two.rs")).len(), 1);
    }

    #[test]
    fn a_long_file_is_named() {
        let text = "\n".repeat(MAX_LINES + 1);
        assert_eq!(length(&Tree::of(&[("a.rs", &text), ("a.md", &text)])).len(), 1);
    }
}
