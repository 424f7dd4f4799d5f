//! Every file of the corpora of what the command line reads, and small changes of each, through the functions that the
//! fuzz targets call.

use std::fs;
use std::path::Path;

use crate::dice::Dice;

#[path = "../../../../fuzz/cli_entry.rs"]
mod cli_entry;

/// Changes of each file. More are for libfuzzer to find.
const CHANGES: u64 = 12;

fn changed(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut new = bytes.to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(new.len().max(1));
        match dice.below(5) {
            0 if at < new.len() => new[at] ^= 1 << dice.below(8),
            1 => new.truncate(at),
            2 => new.insert(at, b"\0\n{/~:\"[="[dice.below(9)]),
            3 if at < new.len() => drop(new.remove(at)),
            _ => {
                let end = (at + dice.below(40)).min(new.len());
                let piece = new[at..end].to_vec();
                new.splice(at..at, piece);
            }
        }
    }
    new
}

fn replay(target: &str, run: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 3, "{target} has no corpus");
    let mut dice = Dice::new(1);
    for file in files {
        let bytes = fs::read(file).unwrap();
        run(&bytes);
        for _ in 0..CHANGES {
            run(&changed(&bytes, &mut dice));
        }
    }
}

#[test]
fn settings() {
    replay("config", cli_entry::config);
}

#[test]
fn receipts() {
    replay("receipt", cli_entry::receipt);
}

#[test]
fn registries() {
    replay("registry", cli_entry::registry);
}
