//! The stage of the demonstration: a small project, and what an agent does to it.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::error::CliError;

/// Makes the project: committed files, then uncommitted and untracked work on top.
pub(super) fn build(work: &Path) -> Result<(), CliError> {
    let failed = |source: io::Error| CliError::failure("the demonstration's project cannot be made", source);
    committed(work).map_err(failed)?;
    commit(work).map_err(|source| CliError::failure("the demonstration's repository cannot be made", source))?;
    uncommitted(work).map_err(failed)
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    File::create(path)?.write_all(content)
}

fn mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn committed(work: &Path) -> io::Result<()> {
    write(&work.join("README.md"), b"# Bakery\n\nOrders bread.\n")?;
    write(&work.join("src/main.rs"), b"fn main() {\n    bread::order(3);\n}\n")?;
    write(&work.join("src/bread.rs"), b"pub fn order(loaves: u32) {\n    println!(\"{loaves}\");\n}\n")?;
    write(&work.join("src/legacy/oven.rs"), b"// Nobody knows why this works.\n")?;
    write(&work.join("src/legacy/notes and ideas.txt"), b"bigger oven\n")?;
    write(&work.join("config"), b"loaves = 3\n")?;
    write(&work.join("logo.bin"), &(0..=255).collect::<Vec<u8>>())?;
    write(&work.join("deploy.sh"), b"#!/bin/sh\nexit 0\n")?;
    mode(&work.join("deploy.sh"), 0o755)
}

/// Work that no commit has: what peers lose first.
fn uncommitted(work: &Path) -> io::Result<()> {
    write(&work.join("README.md"), b"# Bakery\n\nOrders bread, and cake since yesterday.\n")?;
    write(&work.join("notes.txt"), b"call the mill\n")?;
    write(&work.join("empty"), b"")?;
    write(&work.join("secret.key"), b"0123456789\n")?;
    mode(&work.join("secret.key"), 0o600)?;
    fs::create_dir_all(work.join("orders/new"))?;
    symlink("src/main.rs", work.join("current"))
}

/// A commit of what is there, without a git binary.
fn commit(work: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let repo = gix::init(work)?;
    let mut editor = repo.edit_tree(gix::ObjectId::empty_tree(repo.object_hash()))?;
    for name in [
        "README.md",
        "src/main.rs",
        "src/bread.rs",
        "src/legacy/oven.rs",
        "src/legacy/notes and ideas.txt",
        "config",
        "logo.bin",
    ] {
        let blob = repo.write_blob(fs::read(work.join(name))?)?;
        editor.upsert(name, gix::objs::tree::EntryKind::Blob, blob)?;
    }
    let script = repo.write_blob(fs::read(work.join("deploy.sh"))?)?;
    editor.upsert("deploy.sh", gix::objs::tree::EntryKind::BlobExecutable, script)?;
    let tree = editor.write()?.detach();
    let who = gix::actor::SignatureRef {
        name: "baker".into(),
        email: "baker@example.invalid".into(),
        time: "1700000000 +0000",
    };
    repo.commit_as(who, who, "HEAD", "Open the bakery", tree, Vec::<gix::ObjectId>::new())?;
    let mut index = repo.index_from_tree(&tree)?;
    index.write(gix::index::write::Options::default())?;
    Ok(())
}

/// Edits through an agent's tools.
pub(super) fn first_turn(work: &Path) -> io::Result<()> {
    write(&work.join("src/main.rs"), b"fn main() {\n    bread::order(3);\n    cake::order(1);\n}\n")?;
    write(&work.join("src/cake.rs"), b"pub fn order(cakes: u32) {\n    println!(\"{cakes}\");\n}\n")?;
    write(&work.join("README.md"), b"# Bakery\n\nOrders bread and cake.\n")
}

/// What a shell does behind every tool's back.
pub(super) fn second_turn(work: &Path) -> io::Result<()> {
    for name in ["src/legacy/oven.rs", "src/legacy/notes and ideas.txt", "src/legacy"] {
        let path = work.join(name);
        if path.is_dir() { fs::remove_dir(&path)? } else { fs::remove_file(&path)? }
    }
    fs::rename(work.join("README.md"), work.join("README.old"))?;
    mode(&work.join("deploy.sh"), 0o644)?;
    mode(&work.join("secret.key"), 0o644)?;
    fs::remove_file(work.join("config"))?;
    write(&work.join("config/loaves"), b"4\n")?;
    fs::remove_file(work.join("current"))?;
    symlink("src/cake.rs", work.join("current"))?;
    fs::remove_dir(work.join("orders/new"))?;
    fs::remove_file(work.join("empty"))?;
    write(&work.join("logo.bin"), b"")?;
    write(&work.join("notes.txt"), b"call the mill\nand the dairy\n")?;
    write(&work.join("target/debug/bakery"), &[7; 4096])
}
