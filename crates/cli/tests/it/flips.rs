//! `rwd verify --rehash` on a data directory in which one bit was flipped: it says so, or everything that is asked
//! answers as before.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

/// What the program answers about everything it keeps, without the times of the answer itself.
fn answers(sandbox: &Sandbox) -> Vec<(Option<i32>, String)> {
    let ask = |args: &[&str]| {
        let ran = sandbox.rwd(args);
        (Some(ran.code), ran.out)
    };
    [&["log", "--json"][..], &["diff", "t1^", "t1", "-p"], &["show", "t1", "--json"], &["preview", "t1", "--json"]]
        .map(ask)
        .into()
}

#[test]
fn verify_finds_a_flipped_bit_in_every_file_or_nothing_answers_differently() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.write("d/b", "more");
    sandbox.turn(1, |s| s.write("a", "two"));
    sandbox.write("a", "three");
    sandbox.ok(&["save"]);
    let truth = answers(&sandbox);
    assert!(truth.iter().all(|(code, _)| *code == Some(0)), "{truth:?}");
    let whole = sandbox.json(0, &["verify", "--rehash"]);
    assert_eq!(whole["store"], serde_json::json!([]));
    let mut all = Vec::new();
    files(&sandbox.data(), &mut all);
    let good: Vec<(PathBuf, Vec<u8>)> = all.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let (mut flips, mut found) = (0, 0);
    for (at, (path, content)) in good.iter().enumerate() {
        let text = path.extension().is_some_and(|end| end == "json");
        // The crates test each byte of what they own; here a few of each file, and most of those that only this level reads.
        let step = if text { 3 } else { content.len() / 12 + 1 };
        for byte in (at % 3..content.len()).step_by(step) {
            for (path, content) in &good {
                fs::write(path, content).unwrap();
            }
            let mut bad = content.clone();
            bad[byte] ^= 1 << (byte * 3 % 7);
            fs::write(path, bad).unwrap();
            flips += 1;
            if sandbox.rwd(&["verify", "--rehash"]).code != 0 {
                found += 1;
                continue;
            }
            assert_eq!(answers(&sandbox), truth, "byte {byte} of {}", path.display());
        }
    }
    assert!(found > 100, "{found}");
    println!("flips: {flips} in {} files, {found} found, the others without effect", good.len());
}
