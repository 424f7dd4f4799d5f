//! The trees: generated from a seed, or copied from the sources of the dependencies.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{discard, save};
use crate::{Result, process::command, repo};

/// A kind of tree.
pub(crate) struct Workload {
    /// As `docs/performance.md` calls it.
    pub(crate) name: &'static str,
    /// What it resembles.
    pub(crate) kind: &'static str,
    files: u32,
    dirs: u32,
    bytes: u64,
    git: bool,
    shape: Shape,
}

/// How the files of a tree come about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Generated text, spread evenly.
    Text,
    /// Generated text, half of it in directories of 1,250 files, half of it deep.
    WideAndDeep,
    /// The sources of the dependencies.
    Sources,
    /// One file that does not compress and one that does.
    Huge,
}

/// Every kind.
pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1",
        kind: "small source tree",
        files: 1_000,
        dirs: 52,
        bytes: 7_000_000,
        git: true,
        shape: Shape::Text,
    },
    Workload {
        name: "W2",
        kind: "real Rust sources",
        files: 2_300,
        dirs: 250,
        bytes: 22_000_000,
        git: true,
        shape: Shape::Sources,
    },
    Workload {
        name: "W3",
        kind: "kernel-like",
        files: 100_000,
        dirs: 6_000,
        bytes: 1_100_000_000,
        git: true,
        shape: Shape::Text,
    },
    Workload {
        name: "W4",
        kind: "half wide, half deep",
        files: 500_000,
        dirs: 5_700,
        bytes: 151_000_000,
        git: true,
        shape: Shape::WideAndDeep,
    },
    Workload {
        name: "W5",
        kind: "a GiB that does not compress, an archive that does",
        files: 2,
        dirs: 1,
        bytes: 1_666_000_000,
        git: false,
        shape: Shape::Huge,
    },
    Workload {
        name: "W6",
        kind: "node_modules-like, no git",
        files: 63_000,
        dirs: 7_200,
        bytes: 326_000_000,
        git: false,
        shape: Shape::Text,
    },
];

/// A tree on disk.
pub(crate) struct Tree {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) root: PathBuf,
    pub(crate) git: bool,
    /// So few and so big files that only captures are measured.
    pub(crate) huge: bool,
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    pub(crate) bytes: u64,
    /// Regular files that a run may change, relative to the root, spread over the tree.
    pub(crate) some: Vec<PathBuf>,
}

/// Makes the tree, or takes the one an earlier run made.
pub(crate) fn prepare(workload: &'static Workload, base: &Path, max_files: u32) -> Result<Tree> {
    let files = workload.files.min(max_files);
    let scale = |whole: u64| whole * u64::from(files) / u64::from(workload.files);
    let name = format!("{}-{files}", workload.name);
    let (root, ready) = (base.join(&name), base.join(format!("{name}.ready")));
    if !ready.exists() {
        discard(&root)?;
        fs::create_dir_all(&root)?;
        let dirs = u32::try_from(scale(u64::from(workload.dirs)).max(1))?;
        match workload.shape {
            Shape::Sources => copy_dependencies(&root, files)?,
            Shape::Text => generate(&root, &spread(files, dirs), dirs, scale(workload.bytes))?,
            Shape::WideAndDeep => generate(&root, &wide_and_deep(files, dirs), dirs, scale(workload.bytes))?,
            Shape::Huge => huge(&root, workload.bytes)?,
        }
        if workload.git {
            commit(&root)?;
        }
        save(&ready, "")?;
    }
    let mut tree = Tree {
        name: workload.name,
        kind: workload.kind,
        root,
        git: workload.git,
        huge: workload.shape == Shape::Huge,
        files: 0,
        dirs: 0,
        bytes: 0,
        some: Vec::new(),
    };
    count(&mut tree)?;
    Ok(tree)
}

fn count(tree: &mut Tree) -> Result {
    let mut left = vec![PathBuf::new()];
    let mut every = Vec::new();
    while let Some(dir) = left.pop() {
        tree.dirs += 1;
        for entry in fs::read_dir(tree.root.join(&dir))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            let facts = entry.metadata()?;
            if facts.is_dir() {
                if entry.file_name() != ".git" {
                    left.push(path);
                }
            } else {
                tree.files += 1;
                tree.bytes += facts.len();
                if facts.is_file() && (facts.len() < 100_000 || tree.huge) {
                    every.push(path);
                }
            }
        }
    }
    every.sort();
    let step = (every.len() / 1000).max(1);
    tree.some = every.into_iter().step_by(step).take(1000).collect();
    if tree.some.is_empty() { Err("a tree without files".into()) } else { Ok(()) }
}

/// A small generator of numbers, the same for the same seed everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or_default()
    }
}

/// Text that compresses like source: few words, many lines that resemble others.
fn text(numbers: &mut Numbers, words: &[String], bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 80);
    let word = |numbers: &mut Numbers| {
        // Half of all words come from a sixteenth of the vocabulary.
        let range = if numbers.below(2) == 0 { words.len() / 16 } else { words.len() };
        words[numbers.below(range)].as_bytes()
    };
    while out.len() < bytes {
        out.extend(std::iter::repeat_n(b' ', 4 * numbers.below(4)));
        for (open, close) in [("", " = "), ("", "("), ("", ", "), ("", ");\n")] {
            out.extend_from_slice(open.as_bytes());
            let next = word(numbers);
            out.extend_from_slice(next);
            out.extend_from_slice(close.as_bytes());
        }
    }
    out.truncate(bytes);
    out
}

/// The directory of each file, in turn.
fn spread(files: u32, dirs: u32) -> Vec<usize> {
    (0..files).map(|number| (number % dirs) as usize).collect()
}

/// Half of the files in the last directories, 1,250 in each, the others in all directories before.
fn wide_and_deep(files: u32, dirs: u32) -> Vec<usize> {
    let wide = (files / 2).div_ceil(1250).min(dirs - 1);
    let deep = dirs - wide;
    (0..files)
        .map(|number| (if number % 2 == 0 { deep + number / 2 / 1250 } else { number / 2 % deep }) as usize)
        .collect()
}

/// A file of random bytes and one of text, five eighths and three eighths of `bytes`.
fn huge(root: &Path, bytes: u64) -> Result {
    let mut numbers = Numbers(bytes);
    let words: Vec<String> = (0..4000).map(|number| format!("word{number}")).collect();
    let mut random = std::io::BufWriter::new(fs::File::create(root.join("random.bin"))?);
    let eighth = bytes / 8;
    for _ in 0..eighth * 5 / 8 {
        random.write_all(&numbers.next().to_le_bytes())?;
    }
    random.flush()?;
    let mut archive = std::io::BufWriter::new(fs::File::create(root.join("archive.tar"))?);
    for _ in 0..eighth * 3 / 1_000_000 {
        archive.write_all(&text(&mut numbers, &words, 1_000_000))?;
    }
    archive.flush()?;
    Ok(())
}

/// Makes `dirs` directories and one file of text in each of `places`, numbers of directories.
fn generate(root: &Path, places: &[usize], dirs: u32, bytes: u64) -> Result {
    let files = u32::try_from(places.len())?;
    let mut numbers = Numbers(u64::from(files) << 32 | u64::from(dirs));
    let syllables =
        ["re", "ad", "ker", "nel", "to", "ken", "par", "se", "buf", "fer", "in", "dex", "lo", "ck", "no", "de"];
    let words: Vec<String> = (0..4000)
        .map(|_| {
            (0..=numbers.below(3)).map(|_| syllables[numbers.below(syllables.len())]).collect::<Vec<_>>().join("_")
        })
        .collect();
    let mut made = vec![root.to_owned()];
    for number in 1..dirs as usize {
        // Eight directories below each: five levels at six thousand.
        let place = made[(number - 1) / 8].join(format!("{}{number}", words[numbers.below(words.len())]));
        fs::create_dir(&place)?;
        made.push(place);
    }
    let mean = usize::try_from(bytes / u64::from(files.max(1)))?;
    for (number, &place) in places.iter().enumerate() {
        // Sizes from a tenth of the mean to about seven times it, most of them below it.
        let unit = 1.0 - f64::from(u32::try_from(numbers.next() >> 40)?) / f64::from(1_u32 << 24);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a size"
        )]
        let size = ((mean as f64) * (0.1 + 0.9 * -unit.max(1e-3).ln())) as usize;
        let name = format!("{}_{number}.c", words[numbers.below(words.len())]);
        save(&made[place.min(made.len() - 1)].join(name), text(&mut numbers, &words, size))?;
    }
    Ok(())
}

/// Copies crate sources, in the order of their names, until there are enough files.
fn copy_dependencies(root: &Path, files: u32) -> Result {
    let metadata = repo::metadata_of_dependencies()?;
    let packages = metadata["packages"].as_array().map_or(&[] as &[_], Vec::as_slice);
    let sources: BTreeSet<&Path> = packages
        .iter()
        .filter(|package| package["source"].is_string())
        .filter_map(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .collect();
    let mut copied = 0;
    for source in sources {
        let mut left = vec![(source.to_owned(), root.join(source.file_name().unwrap_or_default()))];
        while let Some((from, to)) = left.pop() {
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                let name = entry.file_name();
                if entry.file_type()?.is_dir() {
                    left.push((entry.path(), to.join(name)));
                } else if entry.file_type()?.is_file() && name != ".cargo-ok" {
                    save(&to.join(name), fs::read(entry.path())?)?;
                    copied += 1;
                }
                if copied >= files {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Commits everything and packs it, as a clone would have it.
fn commit(root: &Path) -> Result {
    let steps: [&[&str]; 5] = [
        &["init", "-q", "-b", "main"],
        &["add", "-A"],
        &["commit", "-q", "-m", "all"],
        &["gc", "-q"],
        &["status", "-s"],
    ];
    for step in steps {
        if step == ["status", "-s"] {
            // The index trusts no stamp of the second it was written in; a tree at rest is what is measured.
            thread::sleep(Duration::from_millis(2100));
        }
        let done = command("git")
            .args(["-c", "user.name=u", "-c", "user.email=u@example.invalid", "-c", "gc.auto=0"])
            .args(["-c", "maintenance.auto=false", "-C"])
            .arg(root)
            .args(step)
            .output()?;
        if !done.status.success() {
            return Err(format!("git {} failed: {}", step.join(" "), String::from_utf8_lossy(&done.stderr)).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_tree() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let listed = dirs.each_ref().map(|dir| {
            generate(dir.path(), &spread(200, 12), 12, 200_000).unwrap();
            let mut tree = Tree {
                name: "",
                kind: "",
                root: dir.path().to_owned(),
                git: false,
                huge: false,
                files: 0,
                dirs: 0,
                bytes: 0,
                some: Vec::new(),
            };
            count(&mut tree).unwrap();
            assert_eq!((tree.files, tree.dirs), (200, 12));
            assert!((100_000..400_000).contains(&tree.bytes), "{}", tree.bytes);
            tree.some.iter().map(|path| fs::read(dir.path().join(path)).unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(listed[0], listed[1]);
    }
}
