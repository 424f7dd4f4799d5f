//! Man pages, shell completions and JSON schemas, generated from the command line's own definitions and kept in the
//! repository.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use clap_complete::Shell;

use crate::{Result, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when a generated file is not as it would be generated now
    #[arg(long)]
    check: bool,
}

/// Directories that hold generated files and nothing else.
const DIRS: &[&str] = &["docs/man", "completions", "docs/schemas"];

/// The command line of rwd, as its parser has it.
pub(crate) const COMMAND: fn() -> clap::Command = rwd::cli_command;

/// Generates everything, or checks that it is as generated.
pub(crate) fn run(args: &Args) -> Result {
    let mut wanted = generate(COMMAND())?;
    let sidecar = [("rwd.sidecar/1".to_owned(), rwd::sidecar_schemas())];
    for (name, schema) in rwd::schemas().into_iter().chain(sidecar) {
        let path = Path::new("docs/schemas").join(format!("{}.json", name.replace('/', "-")));
        let mut text = serde_json::to_vec_pretty(&schema)?;
        text.push(b'\n');
        wanted.insert(path, text);
    }
    let root = repo::root();
    let present = present(&root)?;
    let mut stale = Vec::new();
    for (path, content) in &wanted {
        if fs::read(root.join(path)).is_ok_and(|now| now == *content) {
            continue;
        }
        stale.push(path.display().to_string());
        if !args.check {
            let whole = root.join(path);
            fs::create_dir_all(whole.parent().unwrap_or(&root))?;
            write(&whole, content)?;
        }
    }
    for path in present.iter().filter(|path| !wanted.contains_key(*path)) {
        stale.push(path.display().to_string());
        if !args.check {
            fs::remove_file(root.join(path))?;
        }
    }
    match (args.check, stale.is_empty()) {
        (true, false) => Err(format!("run `cargo xtask gen`: {} would change", stale.join(", ")).into()),
        (false, false) => {
            println!("generated {}", stale.join(", "));
            Ok(())
        }
        (_, true) => Ok(()),
    }
}

/// All generated files by path.
fn generate(command: clap::Command) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    // Help and version are described on the page itself; pages of their own would say nothing.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut files = BTreeMap::new();
    let mut left = vec![(command.get_name().to_owned(), command.clone())];
    while let Some((name, command)) = left.pop() {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            left.push((format!("{name}-{}", verb.get_name()), verb.clone()));
        }
        let mut page = Vec::new();
        // No date: the same definition gives the same bytes.
        clap_mangen::Man::new(command.display_name(name.clone()))
            .title(name.to_uppercase())
            .date("")
            .render(&mut page)?;
        files.insert(Path::new("docs/man").join(format!("{name}.1")), page);
    }
    for (shell, file) in [(Shell::Bash, "rwd.bash"), (Shell::Zsh, "_rwd"), (Shell::Fish, "rwd.fish")] {
        let mut script = Vec::new();
        let name = command.get_name().to_owned();
        clap_complete::generate(shell, &mut command.clone(), name, &mut script);
        files.insert(Path::new("completions").join(file), script);
    }
    Ok(files)
}

/// Generated files that exist now, relative to the root.
fn present(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for dir in DIRS {
        if !root.join(dir).is_dir() {
            continue;
        }
        for entry in fs::read_dir(root.join(dir))? {
            found.insert(Path::new(dir).join(entry?.file_name()));
        }
    }
    Ok(found)
}

#[expect(clippy::disallowed_methods, reason = "a file of the repository, which git keeps")]
fn write(path: &Path, content: &[u8]) -> Result {
    Ok(fs::write(path, content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> clap::Command {
        clap::Command::new("rwd")
            .version("0")
            .subcommand(clap::Command::new("save").about("Capture now"))
            .subcommand(clap::Command::new("session").subcommand(clap::Command::new("list")))
    }

    #[test]
    fn every_verb_gets_a_page_and_every_shell_a_script() {
        let files = generate(sample()).unwrap();
        let names: Vec<_> = files.keys().map(|path| path.display().to_string()).collect();
        let pages =
            ["rwd.1", "rwd-save.1", "rwd-session.1", "rwd-session-list.1"].map(|page| format!("docs/man/{page}"));
        let scripts = ["_rwd", "rwd.bash", "rwd.fish"].map(|script| format!("completions/{script}"));
        for name in pages.iter().chain(&scripts) {
            assert!(names.contains(name), "{name} in {names:?}");
        }
        assert_eq!(names.len(), 7);
        let page = String::from_utf8(files[Path::new("docs/man/rwd-save.1")].clone()).unwrap();
        assert!(page.contains("Capture now"), "{page}");
    }

    #[test]
    fn the_same_definition_gives_the_same_bytes() {
        assert_eq!(generate(sample()).unwrap(), generate(sample()).unwrap());
    }
}
