//! Rules of the repository that no compiler checks. Each rule returns what breaks it; the tests below run them all,
//! so `cargo test` finds a breach as well as `cargo xtask tidy`.

mod crates;
mod documents;
mod sources;
mod test_lines;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{Result, generate, repo};

/// One breach, to be read after "error: ".
pub(crate) type Breach = String;

/// The project's files with their text, read once.
pub(crate) struct Tree {
    /// Text files by path relative to the root.
    pub(crate) text: BTreeMap<String, String>,
    /// Every file, binary ones too.
    pub(crate) all: Vec<PathBuf>,
}

impl Tree {
    fn read() -> Result<Self> {
        let root = repo::root();
        let mut text = BTreeMap::new();
        let all: Vec<_> = repo::files()?.into_iter().collect();
        for path in &all {
            // What is not UTF-8 is data, and no rule here is about data.
            if let (Some(name), Ok(content)) = (path.to_str(), fs::read_to_string(root.join(path))) {
                text.insert(name.to_owned(), content);
            }
        }
        Ok(Self { text, all })
    }

    /// A tree of the given files, for the rules' own tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self {
            text: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
            all: files.iter().map(|(path, _)| PathBuf::from(path)).collect(),
        }
    }

    /// Rust files below `crates/*/src`: what is shipped.
    fn shipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rust().filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"))
    }

    /// All Rust files.
    fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text
            .iter()
            .filter(|(path, _)| has_extension(path, "rs"))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

/// Whether the file's name ends with `.extension`.
fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Checks everything and prints what is wrong.
pub(crate) fn run() -> Result {
    let breaches = check()?;
    for breach in &breaches {
        eprintln!("error: {breach}");
    }
    if breaches.is_empty() { Ok(()) } else { Err(format!("{} rules broken", breaches.len()).into()) }
}

/// Every breach of every rule.
fn check() -> Result<Vec<Breach>> {
    let tree = Tree::read()?;
    let metadata = repo::metadata()?;
    let root: toml::Table = tree.text.get("Cargo.toml").ok_or("no Cargo.toml at the root")?.parse()?;
    let mut breaches = Vec::new();
    breaches.extend(crates::layers(&metadata));
    breaches.extend(crates::inherited(&tree, &root));
    breaches.extend(crates::unused(&metadata, &root));
    breaches.extend(sources::length(&tree));
    breaches.extend(sources::unfinished(&tree));
    breaches.extend(sources::allowed(&tree));
    breaches.extend(sources::machine_paths(&tree));
    breaches.extend(sources::pure_core(&tree));
    breaches.extend(sources::test_modules(&tree));
    breaches.extend(documents::dependencies(&tree, &root));
    breaches.extend(documents::links(&tree));
    breaches.extend(documents::cases(&tree));
    breaches.extend(documents::changelog(&tree));
    breaches.extend(documents::codes(&tree));
    breaches.extend(documents::verbs(&tree, &generate::COMMAND()));
    breaches.extend(test_lines::counts(&tree));
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_keeps_its_rules() {
        let breaches = super::check().unwrap();
        assert!(breaches.is_empty(), "{breaches:#?}");
    }
}
